//! The lines of an input, however they come.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| longshore::fuzzing::lines(input));
