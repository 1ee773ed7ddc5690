//! Frame types, and the end that sends each.

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Runs tasks. Its requests have even numbers.
    Worker,
    /// Gives tasks out. Its requests have odd numbers.
    Foreman,
}

impl Role {
    /// The remainder of its requests' numbers modulo two.
    pub const fn parity(self) -> u32 {
        match self {
            Self::Worker => 0,
            Self::Foreman => 1,
        }
    }
}

/// A frame type. 0, 6 (LIST) and all beyond 9 are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ForemanKind {
    /// Answers a request; also the foreman's first frame.
    Ok,
    /// The worker's state.
    Hello,
    /// Tasks to run.
    Job,
    /// A task has ended.
    Update,
    /// Tasks to stop.
    Cancel,
    /// Processors to give up.
    Stop,
    /// Answers a request that is refused.
    Error,
    /// Begins the numbers anew.
    Reset,
}

impl ForemanKind {
    /// Every type, by number.
    pub const ALL: &[Self] =
        &[Self::Ok, Self::Hello, Self::Job, Self::Update, Self::Cancel, Self::Stop, Self::Error, Self::Reset];

    /// The number in the header.
    pub const fn number(self) -> u8 {
        match self {
            Self::Ok => 1,
            Self::Hello => 2,
            Self::Job => 3,
            Self::Update => 4,
            Self::Cancel => 5,
            Self::Stop => 7,
            Self::Error => 8,
            Self::Reset => 9,
        }
    }

    /// The type with that number.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Ok,
            2 => Self::Hello,
            3 => Self::Job,
            4 => Self::Update,
            5 => Self::Cancel,
            7 => Self::Stop,
            8 => Self::Error,
            9 => Self::Reset,
            _ => return None,
        })
    }

    /// Its name in the documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Hello => "HELLO",
            Self::Job => "JOB",
            Self::Update => "UPDATE",
            Self::Cancel => "CANCEL",
            Self::Stop => "STOP",
            Self::Error => "ERROR",
            Self::Reset => "RESET",
        }
    }

    /// Whether arg0 is the length of a body; in the others it is a value, and the frame ends with its header.
    pub const fn has_body(self) -> bool {
        matches!(self, Self::Hello | Self::Job | Self::Update | Self::Cancel)
    }

    /// Whether that end may send it.
    pub const fn is_sent_by(self, role: Role) -> bool {
        match self {
            Self::Ok | Self::Error | Self::Reset => true,
            Self::Hello | Self::Update => matches!(role, Role::Worker),
            Self::Job | Self::Cancel | Self::Stop => matches!(role, Role::Foreman),
        }
    }
}
