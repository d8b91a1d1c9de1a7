//! An upgrade of the driver's package and nodes that come or go are noticed at once, without a
//! driver call.

use crate::daemon_home::Home;
use crate::gpu_box::GpuBox;
use crate::tree::Tree;

#[test]
fn a_library_that_is_replaced_is_said_at_once_with_what_it_means() {
    let tree = Tree::with_driver(2, "580.65.06");
    tree.install(&gpubox::nvml_library(), "usr/lib64", "580.65.06");
    let (home, gpu_box) = (Home::new(), GpuBox::of("empty").without_library().in_tree(&tree));
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    tree.install(&gpubox::nvml_library(), "usr/lib64", "590.48.01");
    daemon.wait_for_log("the driver's library was replaced: 580.65.06 by 590.48.01");
    daemon.wait_for_log("the loaded module is 580.65.06");
    let marks = daemon.wait_for("/v1/marks?from=-1h", "a mark", |marks| {
        marks.to_string().contains("driver_change")
    });
    assert!(marks.to_string().contains("590.48.01"), "{marks}");
}

#[test]
fn a_node_that_vanishes_or_comes_is_said_at_once() {
    let tree = Tree::with_driver(2, "580.65.06");
    let (home, gpu_box) = (Home::new(), GpuBox::of("empty").in_tree(&tree));
    let daemon = home.start(&gpu_box, &[]);
    daemon.wait_for_sampling("running");
    std::fs::remove_file(tree.path("dev/nvidia1")).unwrap();
    daemon.wait_for_log("device file nvidia1 of the driver: gone now");
    tree.write("dev/nvidia1", "");
    daemon.wait_for_log("device file nvidia1 of the driver: there now");
}
