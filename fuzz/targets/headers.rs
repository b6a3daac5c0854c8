//! Headers with a body.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| longshore::fuzzing::request(input));
