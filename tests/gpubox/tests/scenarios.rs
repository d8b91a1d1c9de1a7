//! Every scenario of this directory is read, and so is the example in the README.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::float_cmp, reason = "figures are read, not computed")]

use gpubox::Machine;

#[test]
fn every_scenario_is_read() {
    let directory = gpubox::scenario("empty");
    let mut seen = 0;
    for entry in directory.parent().unwrap().read_dir().unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if let Err(why) = Machine::parse(&text) {
            panic!("{}: {why}", path.display());
        }
        seen += 1;
    }
    assert!(seen >= 13, "{seen} scenarios");
}

#[test]
fn the_example_of_the_readme_is_read() {
    let readme = include_str!("../README.md");
    let mut examples = 0;
    for block in readme.split("```toml").skip(1) {
        let text = block.split("```").next().unwrap_or_default();
        Machine::parse(text).unwrap_or_else(|why| panic!("{why} in {text}"));
        examples += 1;
    }
    assert!(examples > 0);
}

#[test]
fn every_model_makes_a_gpu() {
    for name in gpubox::models().unwrap().keys() {
        let machine = Machine::parse(&format!("[[gpu]]\nmodel = {name:?}\n")).unwrap();
        assert!(!machine.gpus[0].spec.name.is_empty(), "{name}");
    }
}

#[test]
fn mistakes_in_a_scenario_are_named() {
    for (text, word) in [
        ("[[gpu]]\nmodel = 'H999'", "H999"),
        ("[[gpu]]\nmodel = 'T4'\nutilisation = 5", "utilisation"),
        ("[[gpu]]\nmodel = 'T4'\n[[process]]\ngpu = 4\npid = 1\nbytes = 1", "gpu 4 of 1"),
        ("[[gpu]]\nmodel = 'T4'\n[[process]]\ngpu = 0\nbytes = 1", "pid_file"),
    ] {
        let why = Machine::parse(text).map(|_| ()).unwrap_err();
        assert!(why.contains(word), "{why}");
    }
}

#[test]
fn identities_are_the_same_every_time_and_differ_between_gpus() {
    let text = "[[gpu]]\nmodel = 'H200'\ncount = 16\n";
    let (one, two) = (Machine::parse(text).unwrap(), Machine::parse(text).unwrap());
    let uuids =
        |machine: &Machine| machine.gpus.iter().map(|gpu| gpu.uuid.clone()).collect::<Vec<_>>();
    assert_eq!(uuids(&one), uuids(&two));
    let mut distinct = uuids(&one);
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 16);
}

#[test]
fn the_longest_latency_pattern_wins() {
    let machine = Machine::parse(
        "[latency_us]\ndefault = 20\n'nvmlDevice*' = 30\nnvmlDeviceGetPowerUsage = 60\n",
    )
    .unwrap();
    assert_eq!(machine.latency_us("nvmlDeviceGetPowerUsage"), 60.0);
    assert_eq!(machine.latency_us("nvmlDeviceGetName"), 30.0);
    assert_eq!(machine.latency_us("nvmlInit_v2"), 20.0);
}
