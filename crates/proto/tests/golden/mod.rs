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
