//! Incoming bytes, assembled to whole commands and messages.
//!
//! A message that is whole in the bytes that came is handed out where it lies. Others are copied once, to where they will be
//! handed out. Memory grows with the bytes that came, never with the size that a frame claims.

use bytes::Bytes;

use super::curve::traffic::{OVERHEAD, Opened, PREFIX_LEN, Traffic};
use super::frame::{Head, PartialHead};
use super::{Message, ZmtpFault, frame};
use crate::model::limits;

/// One thing that came whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// The body of a command.
    Command(Vec<u8>),
    Message(Message<'a>),
}

/// The incomplete message and frame.
#[derive(Clone, Debug, Default)]
pub(super) struct Intake {
    head: PartialHead,
    /// The frame whose body comes.
    open: Option<OpenFrame>,
    /// The body of a command. Commands may come between the frames of a message: libzmq says PING there.
    command: Vec<u8>,
    /// The parts of a message that are there. With encryption one byte is before them, so that the flags of each part have
    /// a place to be decrypted at.
    parts: Vec<u8>,
    ends: Vec<u32>,
}

/// A frame whose body comes.
#[derive(Clone, Copy, Debug)]
struct OpenFrame {
    head: Head,
    /// Bytes of the body that are still to come.
    left: usize,
    /// With encryption: what is before the text, and the flags, as far as they came.
    sealed: Option<Sealed>,
}

#[derive(Clone, Copy, Debug)]
struct Sealed {
    prefix: [u8; OVERHEAD],
    have: usize,
    /// Where the part begins, for the flags are decrypted one byte before it.
    at: usize,
}

impl Intake {
    /// Bytes that it holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.command.capacity() + self.parts.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    /// Bytes that the message will have with the frame that comes now, as far as is known: its parts so far and the size
    /// that the frame claims. `None` between messages.
    pub(super) fn claimed_bytes(&self) -> Option<usize> {
        let open = self.open.filter(|open| !open.head.command);
        let under_way = open.is_some() || !self.parts.is_empty() || !self.ends.is_empty();
        under_way.then(|| self.parts.len() + open.map_or(0, |open| open.left))
    }

    /// Nothing that has begun is in here.
    const fn is_between_messages(&self) -> bool {
        self.open.is_none() && self.head.is_empty() && self.parts.is_empty() && self.ends.is_empty()
    }

    /// Takes bytes until something is whole. Returns it and the bytes that were used, all of them if nothing is.
    pub(super) fn take<'a>(
        &mut self,
        bytes: &'a [u8],
        message_bytes_max: usize,
        mut traffic: Option<&mut Traffic>,
    ) -> Result<(Option<Item<'a>>, usize), ZmtpFault> {
        if traffic.is_none()
            && self.is_between_messages()
            && let Some((message, used)) = whole(bytes, message_bytes_max)
        {
            return Ok((Some(Item::Message(message)), used));
        }
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            let Some(mut open) = self.open.take() else {
                if traffic.is_some() && self.head.is_empty() && self.parts.is_empty() {
                    self.reserve(rest, message_bytes_max);
                }
                let (taken, head) = self.head.take(rest)?;
                used += taken;
                let Some(head) = head else { return Ok((None, used)) };
                self.open = Some(self.admit(head, message_bytes_max, traffic.is_some())?);
                continue;
            };
            let taken = self.fill(&mut open, rest);
            used += taken;
            if open.left > 0 {
                self.open = Some(open);
                return Ok((None, used));
            }
            if let Some(item) = self.close(open, traffic.as_deref_mut())? {
                return Ok((Some(item), used));
            }
        }
    }

    /// Judges a frame by its head: what is too long is refused before any of it is kept.
    fn admit(&mut self, head: Head, message_bytes_max: usize, encrypted: bool) -> Result<OpenFrame, ZmtpFault> {
        let size = usize::try_from(head.size).unwrap_or(usize::MAX);
        if encrypted {
            // Its content is known when it is decrypted; libzmq says MESSAGE in frames that are not commands.
            if head.more {
                return Err(ZmtpFault::BadFlags(frame::MORE));
            }
            let carried = size.checked_sub(OVERHEAD).ok_or(ZmtpFault::UnexpectedMessage)?;
            if self.parts.is_empty() {
                self.parts.push(0);
            }
            self.admit_part(carried, message_bytes_max.saturating_add(1))?;
            let sealed = Sealed { prefix: [0; OVERHEAD], have: 0, at: self.parts.len() };
            return Ok(OpenFrame { head, left: size, sealed: Some(sealed) });
        }
        if head.command {
            if size > limits::ZMTP_COMMAND_BYTES_MAX {
                return Err(ZmtpFault::CommandTooLarge);
            }
        } else {
            self.admit_part(size, message_bytes_max)?;
        }
        Ok(OpenFrame { head, left: size, sealed: None })
    }

    const fn admit_part(&self, size: usize, message_bytes_max: usize) -> Result<(), ZmtpFault> {
        // Where parts end is kept in 32 bits.
        let most = if message_bytes_max > u32::MAX as usize { u32::MAX as usize } else { message_bytes_max };
        if self.parts.len().saturating_add(size) > most {
            return Err(ZmtpFault::MessageTooLarge);
        }
        if self.ends.len() >= limits::ZMTP_FRAMES_MAX {
            return Err(ZmtpFault::TooManyParts);
        }
        Ok(())
    }

    /// Makes room for an encrypted frame that is whole in these bytes, so that it is not moved while it is gathered.
    fn reserve(&mut self, bytes: &[u8], message_bytes_max: usize) {
        if let Some((head, body, _)) = frame::split(bytes)
            && !head.command
            && body.len() <= message_bytes_max
        {
            self.parts.reserve_exact(1 + body.len());
        }
    }

    /// Takes what belongs to the body.
    fn fill(&mut self, open: &mut OpenFrame, bytes: &[u8]) -> usize {
        let bytes = bytes.get(..open.left).unwrap_or(bytes);
        open.left -= bytes.len();
        let mut text = bytes;
        if let Some(sealed) = &mut open.sealed {
            let room = sealed.prefix.get_mut(sealed.have..).unwrap_or_default();
            let count = room.len().min(text.len());
            for (to, from) in room.iter_mut().zip(text) {
                *to = *from;
            }
            sealed.have += count;
            text = text.get(count..).unwrap_or_default();
        }
        let to = if open.head.command && open.sealed.is_none() { &mut self.command } else { &mut self.parts };
        extend(to, text, open.left);
        bytes.len()
    }

    /// The body is whole.
    fn close<'a>(&mut self, open: OpenFrame, traffic: Option<&mut Traffic>) -> Result<Option<Item<'a>>, ZmtpFault> {
        let Opened { more, command } = match (open.sealed, traffic) {
            (Some(sealed), Some(traffic)) => {
                let opened = self.decrypt(sealed, traffic)?;
                if opened.command {
                    self.command = self.parts.split_off(sealed.at);
                }
                opened
            }
            _ => Opened { more: open.head.more, command: open.head.command },
        };
        if command {
            if self.command.len() > limits::ZMTP_COMMAND_BYTES_MAX {
                return Err(ZmtpFault::CommandTooLarge);
            }
            return Ok(Some(Item::Command(std::mem::take(&mut self.command))));
        }
        let front = usize::from(open.sealed.is_some());
        if more {
            self.ends.push(u32::try_from(self.parts.len() - front).unwrap_or(u32::MAX));
            return Ok(None);
        }
        let body = Bytes::from(std::mem::take(&mut self.parts)).slice(front..);
        Ok(Some(Item::Message(Message::new(body, std::mem::take(&mut self.ends).into()))))
    }

    /// Decrypts a part where it is. Its flags are the first byte of its text: they take the place of the byte before the
    /// part for that long, so that nothing has to be moved.
    fn decrypt(&mut self, sealed: Sealed, traffic: &mut Traffic) -> Result<Opened, ZmtpFault> {
        let [prefix @ .., flags] = &sealed.prefix;
        let prefix: &[u8; PREFIX_LEN] = prefix;
        let text = sealed.at.checked_sub(1).and_then(|at| self.parts.get_mut(at..)).ok_or(ZmtpFault::BadBox)?;
        let before = text.first().copied().unwrap_or_default();
        if let Some(first) = text.first_mut() {
            *first = *flags;
        }
        let opened = traffic.decode(prefix, text)?;
        if let Some(first) = text.first_mut() {
            *first = before;
        }
        Ok(opened)
    }
}

/// The message that these bytes begin with, and its length, if all of it is there and nothing is wrong with it.
fn whole(bytes: &[u8], message_bytes_max: usize) -> Option<(Message<'_>, usize)> {
    let (mut rest, mut size) = (bytes, 0_usize);
    for part_count in 1..=limits::ZMTP_FRAMES_MAX {
        let (head, body, behind) = frame::split(rest)?;
        size += body.len();
        if head.command || size > message_bytes_max {
            return None;
        }
        rest = behind;
        if !head.more {
            let used = bytes.len() - rest.len();
            return Some((Message::of_frames(bytes.get(..used)?, part_count), used));
        }
    }
    None
}

/// Appends bytes to a body of which `left` more are to come. The memory at most doubles, and ends as large as the body.
fn extend(body: &mut Vec<u8>, bytes: &[u8], left: usize) {
    let need = body.len() + bytes.len();
    if need > body.capacity() {
        let wanted = need.saturating_add(left).min(need.max(2 * body.capacity()));
        body.reserve_exact(wanted - body.len());
    }
    body.extend_from_slice(bytes);
}
