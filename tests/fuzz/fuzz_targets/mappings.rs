#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| probes::fuzzing::enter("mappings", bytes));
