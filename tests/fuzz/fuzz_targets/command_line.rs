#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| probes::fuzzing::enter("command_line", bytes));
