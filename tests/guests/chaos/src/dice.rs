//! Dice, and the plain values that they choose: mostly such as are right or nearly right, for what is nonsense does not get far.

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Dice(u64);

/// Texts that have hurt somebody: breaks of lines and frames, control characters, other people's words.
const TEXTS: [&str; 14] = [
    "",
    "plain",
    "two\nlines\r\n",
    "\u{0}\u{7}\u{1b}[31mred",
    "\u{202e}backwards\u{2028}",
    "\u{1F6A2}\u{10FFFF}\u{FEFF}",
    "{\"a\":1}",
    "\"",
    "\\ud800",
    "data: x\nid: 1\n\n",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
    "../../etc/passwd",
    "%s%n${x}{{y}}",
    "\u{85}\u{a0}\t",
];

const JSON: [&str; 20] = [
    "null",
    "true",
    "\"x\"",
    "[]",
    "{}",
    " {\n \"a\" :\r\n [1, 2.50, {\"b\": null}] }\t",
    "18446744073709551617",
    "-0.0",
    "1e400",
    "1e-400",
    "{\"a\":1,\"a\":2}",
    "{\"__proto__\":{\"\":0}}",
    "\"\\u0000\\n\"",
    "\"\\ud800\"",
    "\"\u{2028}\"",
    "",
    "{",
    "NaN",
    "{a:1}",
    "\u{FEFF}{}",
];

const OBJECTS: [&str; 8] = [
    "{}",
    "{\"example.com/a\":{\"b\":[1]}}",
    "{\"io.modelcontextprotocol/serverInfo\":1}",
    "{\"io.modelcontextprotocol/subscriptionId\":\"x\",\"progressToken\":1}",
    "{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"x\"}}",
    "{\"mcp/x\":1,\"dev.mcp/y\":2,\"a.modelcontextprotocol.b/z\":3,\"/\":4,\"\":5}",
    "{\"a\":1e400}",
    "{\"a\":\"\\ud800\"}",
];

const SCHEMAS: [&str; 16] = [
    "{\"type\":\"object\"}",
    "{\"type\":\"object\"}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"enum\":[\"x\",\"y\"]}},\"required\":[\"a\"]}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"^(a+)+$\"}}}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}}}",
    "{\"type\":\"object\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/a\"}},\"$ref\":\"#/$defs/a\"}",
    "{\"type\":\"object\",\"$ref\":\"https://example.com/schema\"}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A B\"}}}",
    "{\"type\":\"object\",\"additionalProperties\":false}",
    "{\"type\":\"object\",\"properties\":[]}",
    "{\"type\":[\"object\"]}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"boolean\"},\"b\":{\"type\":\"number\",\"minimum\":1e400}}}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"enum\":[\"x\"]}}}}",
    "{\"type\":\"integer\"}",
    "true",
];

const NAMES: [&str; 6] = ["a", "A", "name.of-a_tool", "chaos", "no name", "-"];

const URIS: [&str; 9] = [
    "test://a",
    "test://a/{b}",
    "test://{+a}{?b,c}{#d}",
    "https://example.com/",
    "file:///etc/passwd",
    "urn:x:y",
    "data:text/plain,x",
    "no uri",
    "test://{",
];

const MEDIA_TYPES: [&str; 6] = [
    "text/plain",
    "image/png",
    "text/html; charset=\"a b\"",
    "audio/*",
    "nonsense",
    "a/b\r\nX: y",
];

const FLOATS: [f64; 10] = [
    0.0,
    -0.0,
    0.5,
    1.0,
    2.0,
    1e308,
    -1.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

impl Dice {
    /// Dice that fall the same for the same words and `SEED`.
    pub(crate) fn of(words: &[&str]) -> Self {
        let seed = std::env::var("SEED").unwrap_or_default();
        let bytes = words.iter().flat_map(|word| word.bytes().chain([0xff]));
        // FNV-1a.
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(seed.bytes().chain(bytes).fold(0xcbf2_9ce4_8422_2325, mix))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn roll(&mut self, below: usize) -> usize {
        usize::try_from(self.next() % below as u64).unwrap_or_default()
    }

    pub(crate) fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.roll(values.len())]
    }

    /// Whether something happens that does so once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.roll(times) == 0
    }

    pub(crate) fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.once_in(3).then(|| make(self))
    }

    pub(crate) fn some<T>(&mut self, most: usize, make: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.roll(most + 1)).map(|_| make(self)).collect()
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.once_in(2)
    }

    pub(crate) fn float(&mut self) -> f64 {
        if self.once_in(4) {
            return f64::from_bits(self.next());
        }
        self.pick(&FLOATS)
    }

    pub(crate) fn integer(&mut self) -> u64 {
        let shift = self.roll(64);
        self.next() >> shift
    }

    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        self.some(40, |dice| (dice.next() & 0xff) as u8)
    }

    pub(crate) fn text(&mut self) -> String {
        match self.roll(8) {
            0 => self.pick(&["x", "\u{fffd}"]).repeat(self.roll(5_000)),
            1 => {
                let point = |dice: &mut Self| (dice.next() & 0x1f_ffff) as u32;
                let points = self.some(20, point);
                points.into_iter().filter_map(char::from_u32).collect()
            }
            _ => self.pick(&TEXTS).into(),
        }
    }

    /// One of these, or any text.
    fn mostly(&mut self, words: &[&str]) -> String {
        if self.once_in(12) {
            return self.text();
        }
        self.pick(words).into()
    }

    pub(crate) fn json(&mut self) -> String {
        if self.once_in(12) {
            let levels = self.pick(&[63, 64, 65, 127, 128, 129, 4_000]);
            return "[".repeat(levels) + &"]".repeat(levels);
        }
        self.mostly(&JSON)
    }

    pub(crate) fn object(&mut self) -> String {
        if self.once_in(12) {
            return self.json();
        }
        self.mostly(&OBJECTS)
    }

    pub(crate) fn schema(&mut self) -> String {
        if self.once_in(12) {
            return self.json();
        }
        self.mostly(&SCHEMAS)
    }

    pub(crate) fn name(&mut self) -> String {
        if self.flag() {
            return format!("n{}", self.roll(1_000));
        }
        self.mostly(&NAMES)
    }

    pub(crate) fn uri(&mut self) -> String {
        if self.flag() {
            return format!("test://{}", self.roll(1_000));
        }
        self.mostly(&URIS)
    }

    pub(crate) fn media_type(&mut self) -> String {
        self.mostly(&MEDIA_TYPES)
    }
}
