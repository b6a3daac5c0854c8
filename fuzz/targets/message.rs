//! A body or line, whatever it is.

#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| longshore::fuzzing::message(body));
