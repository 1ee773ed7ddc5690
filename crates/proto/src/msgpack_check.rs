//! A check of a peer's MessagePack before anything is built from it.
//!
//! A MessagePack array may claim four billion elements in five bytes, and arrays nest; what builds values from
//! such claims reserves memory for each. So every value that is claimed must be found first, and all of them
//! together may not pass the number the frame may hold.

use crate::model::Code;

/// Checks that `bytes` are one map, whole, with nothing after it and at most `values_max` values inside.
pub(crate) fn check_map(bytes: &[u8], values_max: usize) -> Result<(), Code> {
    if !matches!(bytes.first(), Some(0x80..=0x8F | 0xDE | 0xDF)) {
        return Err(Code::BadBody);
    }
    let (mut rest, mut due, mut claimed) = (bytes, 1_usize, 0_usize);
    while due > 0 {
        let (used, inside) = value(rest).ok_or(Code::BadBody)?;
        rest = rest.get(used..).ok_or(Code::BadBody)?;
        due = (due - 1).saturating_add(inside);
        claimed = claimed.saturating_add(inside);
        if claimed > values_max {
            return Err(Code::BadBody);
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(Code::BadBody) }
}

/// Whether `bytes` are one value of any kind, whole, with nothing after it, at most `values_max` values inside and none
/// of them more than `depth_max` arrays and maps deep. What reads such a value may do so by recursion.
pub(crate) fn is_one_value(bytes: &[u8], values_max: usize, depth_max: usize) -> bool {
    // How many values each open array or map still lacks, the innermost last.
    let mut open: Vec<usize> = Vec::with_capacity(depth_max);
    let (mut rest, mut claimed) = (bytes, 0_usize);
    loop {
        let Some((used, inside)) = value(rest) else { return false };
        let Some(after) = rest.get(used..) else { return false };
        rest = after;
        claimed = claimed.saturating_add(inside);
        if claimed > values_max {
            return false;
        }
        if inside > 0 {
            if open.len() == depth_max {
                return false;
            }
            open.push(inside);
            continue;
        }
        while let Some(due) = open.last_mut() {
            *due -= 1;
            if *due > 0 {
                break;
            }
            open.pop();
        }
        if open.is_empty() {
            return rest.is_empty();
        }
    }
}

/// The bytes of the value at the front, and how many values follow that belong inside it.
fn value(bytes: &[u8]) -> Option<(usize, usize)> {
    let (&marker, rest) = bytes.split_first()?;
    let number = |width: usize| -> Option<usize> {
        let digits = rest.get(..width)?;
        Some(digits.iter().fold(0, |sum: usize, digit| (sum << 8) | usize::from(*digit)))
    };
    Some(match marker {
        0x00..=0x7F | 0xC0 | 0xC2 | 0xC3 | 0xE0..=0xFF => (1, 0),
        0x80..=0x8F => (1, 2 * usize::from(marker & 0x0F)),
        0x90..=0x9F => (1, usize::from(marker & 0x0F)),
        0xA0..=0xBF => (1 + usize::from(marker & 0x1F), 0),
        0xC1 => return None,
        // Text and binary: marker, length, bytes. Extensions have one byte more, their type.
        0xC4 | 0xD9 => (number(1)?.saturating_add(2), 0),
        0xC5 | 0xDA => (number(2)?.saturating_add(3), 0),
        0xC6 | 0xDB => (number(4)?.saturating_add(5), 0),
        0xC7 => (number(1)?.saturating_add(3), 0),
        0xC8 => (number(2)?.saturating_add(4), 0),
        0xC9 => (number(4)?.saturating_add(6), 0),
        0xCC | 0xD0 => (2, 0),
        0xCD | 0xD1 | 0xD4 => (3, 0),
        0xD5 => (4, 0),
        0xCA | 0xCE | 0xD2 => (5, 0),
        0xD6 => (6, 0),
        0xCB | 0xCF | 0xD3 => (9, 0),
        0xD7 => (10, 0),
        0xD8 => (18, 0),
        0xDC => (3, number(2)?),
        0xDD => (5, number(4)?),
        0xDE => (3, number(2)?.saturating_mul(2)),
        0xDF => (5, number(4)?.saturating_mul(2)),
    })
}
