//! Ids of connections, deliveries and messages.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A connection, named by the shell. The generation tells a new connection from an old one that used the
/// same index, so that nothing meant for the one reaches the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    /// Small and reused.
    pub index: u32,
    /// Rises each time the index is reused.
    pub generation: u32,
}

/// One hand-over of a message to a worker: `word` and `seq` of DELIVER, echoed by the frames that settle it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Delivery {
    /// Where the broker keeps the message (`word`).
    pub index: u32,
    /// The number of this delivery (`seq`); every attempt has a new one.
    pub stamp: u32,
}

/// A message's id: 48 random bits of the broker's run, 48 bits of a rising serial, 32 bits of place.
///
/// The place makes looking a message up as cheap as an array access; the serial makes sure that what
/// stands there now is the message that was meant. A durable message has no place that its id could name: it holds in the
/// next run of the broker, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageId([u8; 16]);

impl MessageId {
    /// The id of a message in memory, at that place; `run` and `serial` are cut to 48 bits.
    #[doc(hidden)]
    pub fn new(run: u64, serial: u64, index: u32) -> Self {
        let serial = serial & Self::MASK_48;
        let high = run << 16 | serial >> 32;
        let low = serial << 32 | u64::from(index);
        Self((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
    }

    /// The id of a durable message.
    #[doc(hidden)]
    pub fn durable(run: u64, serial: u64) -> Self {
        Self::new(run, serial, Self::NO_PLACE)
    }

    const MASK_48: u64 = (1 << 48) - 1;
    /// In the bits of the place.
    const NO_PLACE: u32 = u32::MAX;

    /// The 16 bytes as they travel.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The id in these 16 bytes; any bytes are an id, though perhaps of nothing.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The run of the broker that gave the id out.
    pub fn run(self) -> u64 {
        self.field(80)
    }

    /// The serial within the run.
    pub fn serial(self) -> u64 {
        self.field(32)
    }

    /// The place in the broker's table of messages; `None`: the message is durable.
    #[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are the field")]
    pub const fn place(self) -> Option<u32> {
        match u128::from_be_bytes(self.0) as u32 {
            Self::NO_PLACE => None,
            place => Some(place),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "masked to 48 bits")]
    fn field(self, shift: u32) -> u64 {
        (u128::from_be_bytes(self.0) >> shift) as u64 & Self::MASK_48
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageId({self})")
    }
}

/// Why a text is not a message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message id is 32 hexadecimal digits")]
pub struct IdError;

impl FromStr for MessageId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(IdError);
        }
        let value = u128::from_str_radix(text, 16).map_err(|_| IdError)?;
        Ok(Self(value.to_be_bytes()))
    }
}

/// A worker's capacity. In a map it is a number, or nil for unlimited, as in REGISTER.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<u32>", into = "Option<u32>")]
pub enum Slots {
    /// At most this many units of cost at a time.
    Limited(u32),
    /// The broker sets no limit (S0.6).
    Unlimited,
}

impl Slots {
    /// As the rota counts it: unlimited is the largest number.
    pub const fn as_count(self) -> u32 {
        match self {
            Self::Limited(n) => n,
            Self::Unlimited => u32::MAX,
        }
    }

    /// Those that are left beside `used` ones.
    #[must_use]
    pub const fn free(self, used: u32) -> Self {
        match self {
            Self::Limited(count) => Self::Limited(count.saturating_sub(used)),
            Self::Unlimited => Self::Unlimited,
        }
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self::Limited(0)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Slots {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Slots".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Option::<u32>::json_schema(generator)
    }
}

impl From<u32> for Slots {
    fn from(count: u32) -> Self {
        Self::Limited(count)
    }
}

impl From<Option<u32>> for Slots {
    fn from(count: Option<u32>) -> Self {
        count.map_or(Self::Unlimited, Self::Limited)
    }
}

impl From<Slots> for Option<u32> {
    fn from(slots: Slots) -> Self {
        match slots {
            Slots::Limited(n) => Some(n),
            Slots::Unlimited => None,
        }
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(n) => write!(f, "{n}"),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// How safe a sent message is when its sender gets the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// In the broker's memory: gone when the broker ends.
    Memory,
    /// On the broker's disk: it outlives the broker.
    Disk,
}

impl Durability {
    /// As it stands in `word` of STORED.
    #[doc(hidden)]
    pub const fn as_word(self) -> u32 {
        match self {
            Self::Memory => 0,
            Self::Disk => 1,
        }
    }

    /// The durability with that number.
    #[doc(hidden)]
    pub const fn from_word(word: u32) -> Option<Self> {
        match word {
            0 => Some(Self::Memory),
            1 => Some(Self::Disk),
            _ => None,
        }
    }

    /// The name that users read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_gives_back_what_it_was_made_of() {
        let id = MessageId::new(0xABCD_1234_5678, 42, 7);
        assert_eq!((id.run(), id.serial(), id.place()), (0xABCD_1234_5678, 42, Some(7)));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(MessageId::from_bytes(id.to_bytes()), id);
    }

    #[test]
    fn the_id_of_a_durable_message_names_no_place() {
        let id = MessageId::durable(3, 42);
        assert_eq!((id.run(), id.serial(), id.place()), (3, 42, None));
        assert_eq!(id.to_string(), "00000000000300000000002affffffff");
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn an_id_is_cut_to_its_fields() {
        let id = MessageId::new(u64::MAX, u64::MAX, u32::MAX);
        assert_eq!((id.run(), id.serial()), ((1 << 48) - 1, (1 << 48) - 1));
    }

    #[test]
    fn other_text_is_no_id() {
        for text in ["", "12", "+0000000000000000000000000000001", "zz000000000000000000000000000000"] {
            assert_eq!(text.parse::<MessageId>(), Err(IdError), "{text}");
        }
    }
}
