//! The structs as the generated bindings have them, against the sizes that real headers compile
//! to. The stand-in writes through these types, so a wrong size would overrun a caller.

use std::mem::{offset_of, size_of};

use nvml_wrapper_sys::bindings::*;

#[test]
fn sizes_are_those_of_the_header() {
    let sizes = [
        (size_of::<nvmlMemory_t>(), 24),
        (size_of::<nvmlMemory_v2_t>(), 40),
        (size_of::<nvmlPciInfo_t>(), 68),
        (size_of::<nvmlBAR1Memory_t>(), 24),
        (size_of::<nvmlUtilization_t>(), 8),
        (size_of::<nvmlProcessInfo_v1_t>(), 16),
        (size_of::<nvmlProcessInfo_v2_t>(), 24),
        (size_of::<nvmlProcessDetail_v1_t>(), 32),
        (size_of::<nvmlProcessDetailList_v1_t>(), 24),
        (size_of::<nvmlProcessUtilizationSample_t>(), 32),
        (size_of::<nvmlProcessUtilizationInfo_v1_t>(), 40),
        (size_of::<nvmlProcessesUtilizationInfo_v1_t>(), 24),
        (size_of::<nvmlFieldValue_t>(), 40),
        (size_of::<nvmlSample_t>(), 16),
        (size_of::<nvmlEventData_t>(), 32),
        (size_of::<nvmlGpmMetric_t>(), 40),
        (size_of::<nvmlGpmSupport_t>(), 8),
        (size_of::<nvmlEccSramErrorStatus_v1_t>(), 104),
        (size_of::<nvmlRowRemapperHistogramValues_t>(), 20),
        (size_of::<nvmlGpuFabricInfo_t>(), 28),
        (size_of::<nvmlGpuFabricInfo_v2_t>(), 36),
        (size_of::<nvmlGpuFabricInfo_v3_t>(), 40),
        (size_of::<nvmlTemperature_v1_t>(), 12),
        (size_of::<nvmlMarginTemperature_v1_t>(), 8),
        (size_of::<nvmlFanSpeedInfo_v1_t>(), 12),
        (size_of::<nvmlDeviceAttributes_t>(), 40),
        (size_of::<nvmlPlatformInfo_v1_t>(), 44),
        (size_of::<nvmlPlatformInfo_v2_t>(), 44),
        (size_of::<nvmlSystemConfComputeSettings_v1_t>(), 20),
        (size_of::<nvmlNvLinkInfo_v1_t>(), 8),
        (size_of::<nvmlNvLinkInfo_v2_t>(), 1612),
        (size_of::<nvmlAccountingStats_t>(), 56),
        (size_of::<nvmlRepairStatus_v1_t>(), 12),
        (size_of::<nvmlDeviceAddressingMode_v1_t>(), 8),
        (size_of::<nvmlC2cModeInfo_v1_t>(), 4),
        (size_of::<nvmlSystemDriverBranchInfo_v1_t>(), 84),
        (size_of::<nvmlGpuDynamicPstatesInfo_t>(), 132),
    ];
    for (position, (have, want)) in sizes.into_iter().enumerate() {
        assert_eq!(have, want, "row {position}");
    }
}

#[test]
fn metrics_start_where_the_stand_in_looks_for_them() {
    assert_eq!(offset_of!(nvmlGpmMetricsGet_t, sample1), 8);
    assert_eq!(offset_of!(nvmlGpmMetricsGet_t, metrics), 24);
    assert_eq!(offset_of!(nvmlMemory_v2_t, used), 32);
    assert_eq!(offset_of!(nvmlProcessInfo_v2_t, gpuInstanceId), 16);
}
