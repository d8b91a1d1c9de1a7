#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| infertop::fuzzing::enter("store_chunk", bytes));
