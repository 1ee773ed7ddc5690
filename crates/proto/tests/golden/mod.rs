//! Reads the files of `vectors/`.

#[allow(dead_code, reason = "the tests of the foreman's protocol read another file")]
const NATIVE: &str = include_str!("../../vectors/native.txt");

/// One golden vector.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "each test reads the fields it needs")]
pub(crate) struct Vector {
    /// What the tests call it.
    pub(crate) name: &'static str,
    /// The frame for people.
    pub(crate) frame: &'static str,
    /// The whole frame.
    pub(crate) bytes: Vec<u8>,
}

/// Every vector of the native wire, in the order of the file.
#[allow(dead_code, reason = "the tests of the foreman's protocol read another file")]
pub(crate) fn all() -> Vec<Vector> {
    read(NATIVE)
}

/// The same, as the file is now.
#[allow(dead_code, reason = "only the test of the bytes writes the file")]
pub(crate) fn now() -> Vec<Vector> {
    read(std::fs::read_to_string(path()).expect("the vectors").leak())
}

/// The comments at the top of the file of the native wire.
#[allow(dead_code, reason = "only the test of the bytes writes the file")]
pub(crate) fn head() -> String {
    NATIVE.split_inclusive('\n').take_while(|line| line.starts_with('#')).collect()
}

/// Replaces the file of the native wire.
#[expect(clippy::disallowed_methods, reason = "the crate itself has no I/O; its test writes the vectors")]
#[allow(dead_code, reason = "only the test of the bytes writes the file")]
pub(crate) fn write(text: &str) {
    std::fs::write(path(), text).expect("the vectors can be written");
}

fn path() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/native.txt")
}

/// The MessagePack value at the front, as the line for people shows it.
#[allow(dead_code, reason = "only the test of the bytes writes the file")]
pub(crate) fn packed(bytes: &mut &[u8]) -> String {
    let (&marker, rest) = bytes.split_first().expect("a whole value");
    *bytes = rest;
    let mut take = |count: usize| {
        let (taken, rest) = bytes.split_at(count);
        *bytes = rest;
        taken
    };
    let mut number = |width: usize| take(width).iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let length = |number: u64| usize::try_from(number).expect("in memory");
    let many = |bytes: &mut &[u8], count: usize| (0..count).map(|_| packed(bytes)).collect::<Vec<_>>();
    match marker {
        0x00..=0x7F => marker.to_string(),
        0xE0..=0xFF => marker.cast_signed().to_string(),
        0xC0 => "null".to_owned(),
        0xC2 | 0xC3 => (marker == 0xC3).to_string(),
        0xCB => f64::from_bits(number(8)).to_string(),
        0xCC..=0xCF => number(1 << (marker - 0xCC)).to_string(),
        0xD2 => i32::from_be_bytes(take(4).try_into().expect("four")).to_string(),
        0xA0..=0xBF => format!("{:?}", std::str::from_utf8(take(usize::from(marker & 0x1F))).expect("text")),
        0xD9..=0xDB => {
            let count = length(number(1 << (marker - 0xD9)));
            format!("{:?}", std::str::from_utf8(take(count)).expect("text"))
        }
        0xC4..=0xC6 => {
            let count = length(number(1 << (marker - 0xC4)));
            format!("x'{}'", take(count).iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        0x90..=0x9F => format!("[{}]", many(bytes, usize::from(marker & 0x0F)).join(", ")),
        0xDC => {
            let count = length(number(2));
            format!("[{}]", many(bytes, count).join(", "))
        }
        0x80..=0x8F | 0xDE => {
            let count = if marker == 0xDE { length(number(2)) } else { usize::from(marker & 0x0F) };
            let pairs = many(bytes, 2 * count);
            let pairs: Vec<String> = pairs.chunks(2).map(|pair| pair.join(": ")).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        other => panic!("a value that begins with {other:#04x} is not shown yet"),
    }
}

/// Every vector of a file, in its order. Panics on a file that is not in its own format.
pub(crate) fn read(file: &'static str) -> Vec<Vector> {
    let lines = file.lines().skip_while(|line| line.starts_with('#'));
    let text: Vec<&str> = lines.collect();
    let blocks = text.split(|line| line.is_empty()).filter(|block| !block.is_empty());
    blocks
        .map(|block| {
            let [name, frame, bytes] = block else { panic!("a block has three lines: {block:?}") };
            Vector { name: field(name, "name: "), frame: field(frame, "frame: "), bytes: hex(field(bytes, "bytes: ")) }
        })
        .collect()
}

/// Bytes from hexadecimal digits; white space has no meaning.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| u8::try_from(c.to_digit(16).expect("a hexadecimal digit")).expect("below 16"))
        .collect();
    assert!(digits.len().is_multiple_of(2), "two digits a byte: {text}");
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
}

fn field(line: &'static str, key: &str) -> &'static str {
    line.strip_prefix(key).unwrap_or_else(|| panic!("{line:?} begins with {key:?}"))
}
