#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| turno_fuzz_targets::lmq_message(data));
