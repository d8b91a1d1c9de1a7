//! Registration with the fabric manager.

use nvml_wrapper_sys::bindings::{
    nvmlGpuFabricInfo_t, nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfo_v3_t,
};

use crate::call::{Ask, edit, put, supported, versioned};
use crate::codes::Answer;

/// Degraded bandwidth, route recovery, route unhealthy, access timeout: all "no"; no incorrect
/// configuration.
const HEALTHY: u32 = 0x2 | 0x2 << 2 | 0x2 << 4 | 0x2 << 6 | 0x1 << 8;

fn state(ask: &Ask) -> Answer<u32> {
    supported(ask.gpu.spec.architecture >= 9)?;
    Ok(match &ask.gpu.spec.fabric_state {
        Some(series) => series.at(ask.t) as u32,
        None => {
            if ask.gpu.spec.fabric {
                3
            } else {
                0
            }
        }
    })
}

/// One cluster per box; zeros as long as registration has not completed.
fn cluster(ask: &Ask, state: u32) -> [u8; 16] {
    if state == 3 { [0x1B ^ ask.site.machine.host.seed as u8; 16] } else { [0; 16] }
}

device_calls! {
    fn nvmlDeviceGetGpuFabricInfo(ask, info: *mut nvmlGpuFabricInfo_t) {
        let state = state(ask)?;
        put(info, nvmlGpuFabricInfo_t {
            clusterUuid: cluster(ask, state),
            status: 0,
            cliqueId: 0,
            state: state as u8,
        })
    }
    fn nvmlDeviceGetGpuFabricInfoV(ask, info: *mut nvmlGpuFabricInfo_v3_t) {
        let current = state(ask)?;
        let healthy = if current == 3 { HEALTHY } else { 0 };
        if versioned(info, 3).is_ok() {
            return edit(info, |info| {
                info.clusterUuid = cluster(ask, current);
                info.status = 0;
                info.cliqueId = 0;
                info.state = current as u8;
                info.healthMask = healthy;
                info.healthSummary = u8::from(current == 3);
            });
        }
        let info = info.cast::<nvmlGpuFabricInfo_v2_t>();
        versioned(info, 2)?;
        edit(info, |info| {
            info.clusterUuid = cluster(ask, current);
            info.status = 0;
            info.cliqueId = 0;
            info.state = current as u8;
            info.healthMask = healthy;
        })
    }
}
