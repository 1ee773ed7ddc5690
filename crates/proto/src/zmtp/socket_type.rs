//! Socket types, and the pairs that can be connected.

use std::fmt;

macro_rules! socket_types {
    ($( $variant:ident = $name:literal, with $( $other:ident )+; )+) => {
        /// The type of a ZeroMQ socket. Draft types (CLIENT, SERVER, RADIO, DISH and later ones) are not among them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SocketType {
            $( #[doc = $name] $variant, )+
        }

        impl SocketType {
            /// Every socket type.
            pub const ALL: &[Self] = &[ $( Self::$variant, )+ ];

            /// The name in the property Socket-Type.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// Whether the two may be the ends of one connection (37/ZMTP, Socket-Type).
            pub const fn talks_to(self, other: Self) -> bool {
                match self { $( Self::$variant => matches!(other, $( Self::$other )|+), )+ }
            }
        }
    };
}

socket_types! {
    Req = "REQ", with Rep Router;
    Rep = "REP", with Req Dealer;
    Dealer = "DEALER", with Rep Dealer Router;
    Router = "ROUTER", with Req Dealer Router;
    Pub = "PUB", with Sub Xsub;
    Xpub = "XPUB", with Sub Xsub;
    Sub = "SUB", with Pub Xpub;
    Xsub = "XSUB", with Pub Xpub;
    Push = "PUSH", with Pull;
    Pull = "PULL", with Push;
    Pair = "PAIR", with Pair;
}

impl SocketType {
    /// The type with that name.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name().as_bytes() == name)
    }

    /// The type that a broker takes towards a peer of this one: it can address each peer, and has no order of its own in
    /// which messages must come. `None` for PAIR, which knows only one peer.
    pub const fn counterpart(self) -> Option<Self> {
        match self {
            Self::Req | Self::Dealer => Some(Self::Router),
            Self::Rep | Self::Router => Some(Self::Dealer),
            Self::Pub | Self::Xpub => Some(Self::Sub),
            Self::Sub | Self::Xsub => Some(Self::Xpub),
            Self::Push => Some(Self::Pull),
            Self::Pull => Some(Self::Push),
            Self::Pair => None,
        }
    }

    /// Whether a socket of this type sends SUBSCRIBE and CANCEL.
    pub const fn subscribes(self) -> bool {
        matches!(self, Self::Sub | Self::Xsub)
    }

    /// Whether a socket of this type sends messages.
    pub const fn sends(self) -> bool {
        !matches!(self, Self::Sub | Self::Pull)
    }

    /// Whether READY of this type carries an Identity.
    pub(super) const fn has_identity(self) -> bool {
        matches!(self, Self::Req | Self::Dealer | Self::Router)
    }
}

impl fmt::Display for SocketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn talking_goes_both_ways_and_a_counterpart_can_be_talked_to() {
        for one in SocketType::ALL {
            assert_eq!(SocketType::from_name(one.name().as_bytes()), Some(*one));
            for other in SocketType::ALL {
                assert_eq!(one.talks_to(*other), other.talks_to(*one), "{one} and {other}");
            }
            assert!(one.counterpart().is_none_or(|other| one.talks_to(other)), "{one}");
        }
        assert_eq!(SocketType::from_name(b"CLIENT"), None);
        assert_eq!(SocketType::from_name(b"req"), None, "the values of properties have a case");
    }

    /// The table of 37/ZMTP, row by row.
    #[test]
    fn the_table_is_that_of_the_specification() {
        let table: Vec<String> = SocketType::ALL
            .iter()
            .map(|one| SocketType::ALL.iter().map(|other| if one.talks_to(*other) { '*' } else { '.' }).collect())
            .collect();
        // REQ REP DEALER ROUTER PUB XPUB SUB XSUB PUSH PULL PAIR
        assert_eq!(
            table,
            [
                ".*.*.......",
                "*.*........",
                ".***.......",
                "*.**.......",
                "......**...",
                "......**...",
                "....**.....",
                "....**.....",
                ".........*.",
                "........*..",
                "..........*",
            ]
        );
    }
}
