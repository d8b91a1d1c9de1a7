//! One reason for all readings of a GPU that nobody will read: a MIG instance has no clocks of its
//! own, a GPU that was lost before the first look tells nothing. "Not read yet" would promise a value.

use super::Gpu;
use crate::reading::{Absence, Reading};

fn explain<T>(reading: &mut Reading<T>, why: &Absence) {
    if matches!(reading, Reading::Absent(Absence::NotRead)) {
        *reading = Reading::Absent(why.clone());
    }
}

/// `group { field field … }`: every reading of the group. A test finds one that is forgotten.
macro_rules! explain_all {
    ($gpu:ident, $why:ident; $($group:ident { $($field:ident)* })*) => {
        $($(explain(&mut $gpu.$group.$field, $why);)*)*
    };
}

impl Gpu {
    /// Gives what was not read this reason instead; values and other reasons stay.
    pub fn explain_unread(&mut self, why: &Absence) {
        for reading in [&mut self.uuid, &mut self.name, &mut self.pci] {
            explain(reading, why);
        }
        explain_all!(self, why;
            identity {
                serial board_part_number vbios pci_device_id architecture compute_capability cores
                memory_bus_bits minor module_id gsp_firmware gsp_enabled persistence compute_mode
                display_active addressing virtualization mig_enabled mig_pending confidential
            }
            memory {
                total_bytes reserved_bytes used_bytes free_bytes bar1_total_bytes bar1_used_bytes
            }
            utilization {
                gpu_ratio memory_ratio encoder_ratio decoder_ratio jpeg_ratio optical_flow_ratio
            }
            gpm {
                supported graphics_ratio sm_active_ratio sm_occupancy_ratio integer_ratio
                tensor_ratio tensor_dfma_ratio tensor_hmma_ratio tensor_dmma_ratio tensor_imma_ratio
                dram_bandwidth_ratio fp64_ratio fp32_ratio fp16_ratio pcie_tx_bytes_per_second
                pcie_rx_bytes_per_second nvlink_tx_bytes_per_second nvlink_rx_bytes_per_second
                l2_host_hit_ratio l2_host_miss_ratio l2_peer_hit_ratio l2_peer_miss_ratio
                l2_dram_hit_ratio l2_dram_miss_ratio
            }
            clocks {
                sm_mhz graphics_mhz memory_mhz video_mhz sm_max_mhz memory_max_mhz
                performance_state reasons reasons_supported power_cap_ns_total thermal_ns_total
                board_limit_ns_total reliability_ns_total software_thermal_ns_total
                hardware_thermal_ns_total power_brake_ns_total
            }
            power {
                draw_watts module_watts limit_watts limit_default_watts limit_min_watts
                limit_max_watts energy_joules_total
            }
            temperature {
                gpu_celsius memory_celsius margin_celsius slowdown_celsius shutdown_celsius
                slowdown_margin_celsius shutdown_margin_celsius fan_ratios
            }
            ecc {
                enabled enabled_pending corrected_volatile_total uncorrected_volatile_total
                corrected_lifetime_total uncorrected_lifetime_total sram sram_threshold_exceeded
                remapped_corrected_total remapped_uncorrected_total remap_pending remap_failed
                remap_banks retired_corrected_total retired_uncorrected_total retirement_pending
                channel_repair_pending recovery_action
            }
            pcie {
                generation width max_generation max_width gpu_max_generation tx_bytes_per_second
                rx_bytes_per_second rate_source tx_bytes_total rx_bytes_total replay_total
            }
            nvlink { count tx_bytes_per_second rx_bytes_per_second tx_kib_total rx_kib_total }
            fabric { state status clique health_mask health }
            topology { cpu_affinity memory_affinity }
            processes { list }
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reading_of_a_gpu_is_forgotten() {
        let mut gpu = Gpu::default();
        gpu.power.draw_watts = 70.0.into();
        gpu.memory.used_bytes = Reading::Absent(Absence::Lost);
        gpu.explain_unread(&Absence::Unsupported);
        let text = serde_json::to_string(&gpu).unwrap();
        let at = text.find("not_read").unwrap_or(text.len());
        assert_eq!(at, text.len(), "{}", &text[at.saturating_sub(60)..]);
        assert_eq!(gpu.power.draw_watts, 70.0.into());
        assert_eq!(gpu.memory.used_bytes, Reading::Absent(Absence::Lost));
    }
}
