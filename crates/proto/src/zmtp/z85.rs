//! Z85, the text form of CURVE keys (32/Z85): 32 bytes are 40 printable characters.

const DIGITS: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Four bytes are a number of five digits.
const POWERS: [u32; 5] = [85 * 85 * 85 * 85, 85 * 85 * 85, 85 * 85, 85, 1];

pub(super) fn encode(key: &[u8; 32]) -> String {
    let (groups, _) = key.as_chunks::<4>();
    let digits = groups.iter().flat_map(|group| {
        let number = u32::from_be_bytes(*group);
        POWERS.map(|power| DIGITS.get((number / power % 85) as usize).copied().map_or('0', char::from))
    });
    digits.collect()
}

pub(super) fn decode(text: &str) -> Option<[u8; 32]> {
    let (groups, []) = text.as_bytes().as_chunks::<5>() else { return None };
    let mut key = [0; 32];
    let (places, _) = key.as_chunks_mut::<4>();
    if groups.len() != places.len() {
        return None;
    }
    for (place, group) in places.iter_mut().zip(groups) {
        let mut number = 0_u32;
        for digit in group {
            let value = DIGITS.iter().position(|known| known == digit)?;
            number = number.checked_mul(85)?.checked_add(u32::try_from(value).ok()?)?;
        }
        *place = number.to_be_bytes();
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key pair of 32/Z85's test case.
    #[test]
    fn keys_are_written_and_read_as_the_specification_says() {
        let key = [
            0xBB, 0x88, 0x47, 0x1D, 0x65, 0xE2, 0x65, 0x9B, 0x30, 0xC5, 0x5A, 0x53, 0x21, 0xCE, 0xBB, 0x5A, 0xAB, 0x2B,
            0x70, 0xA3, 0x98, 0x64, 0x5C, 0x26, 0xDC, 0xA2, 0xB2, 0xFC, 0xB4, 0x3F, 0xC5, 0x18,
        ];
        let text = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
        assert_eq!(encode(&key), text);
        assert_eq!(decode(text), Some(key));
        assert_eq!(decode(&encode(&[0xFF; 32])), Some([0xFF; 32]));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let short = "0".repeat(39);
        let long = "0".repeat(45);
        // The greatest number of five digits is above four bytes; a blank is no digit.
        let (great, blank) = ("#".repeat(40), format!("{short} "));
        for text in ["", &short, &long, &great, &blank, &"é".repeat(20)] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
