//! The store in the directory: its format, its segments, its end, and any damage.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use turno_proto::model::{Code, QueueName};
use turno_store::disk::FsDisk;
use turno_store::{Damage, DamageKind, FORMAT, Inspection, Log, OpenError, ReadError, inspect_headers, inspect_with};

use super::directory::is_taken;
use super::{Report, dead};
use crate::cli::schema::doctor::{DamageBody, PlaceBody, StoreBody};
use crate::cli::size;
use turno_broker::storage::{Dead, dead_letters};

/// Damaged places that get a line each.
const PLACES_MAX: usize = 10;

/// `dead_max`: dead letters of a queue beyond which to warn.
pub(super) fn look(data: &Path, dead_max: u64, report: &mut Report) {
    let directory = data.join("store");
    let mut disk = FsDisk::to_read(directory.clone());
    let is_running = || is_taken(data).unwrap_or(true);
    if is_running() {
        let found = inspect_headers(&mut disk);
        return match found {
            Ok((names, 0)) if names.is_empty() => no_store(report),
            Ok((_, format)) if format <= FORMAT => tell_format(report),
            Ok((_, format)) => newer(report, "the store", format),
            Err(error) if is_missing(&error) => no_store(report),
            Err(error) => unreadable(report, &error),
        };
    }
    let mut dead = None;
    let Inspection { log, damage, .. } = inspect_with(&mut disk, |contents| dead = Some(dead_letters(contents)));
    if is_running() {
        let advice = "run the command again: the broker may have changed files during the check";
        report.warn("store", "a broker started during the check".to_owned(), advice);
        return;
    }
    match log {
        Ok(log) if log.segments == 0 => no_store(report),
        Ok(log) => {
            well(report, log);
            dead.into_iter().for_each(|dead| tell_dead(report, dead, dead_max));
        }
        Err(error) if is_missing(&error) => no_store(report),
        Err(OpenError::Newer { file, found, .. }) => newer(report, &file, found),
        Err(OpenError::Damaged { file, offset, what }) => {
            damaged(report, &directory, (&file, offset, what), damage.unwrap_or_default());
        }
        Err(error) => unreadable(report, &error),
    }
}

/// No directory is no store.
fn is_missing(error: &OpenError) -> bool {
    matches!(error, OpenError::Io { doing: "list", source, .. } if source.kind() == ErrorKind::NotFound)
}

fn no_store(report: &mut Report) {
    report.ok("store", "nothing has been stored here".to_owned());
}

fn tell_format(report: &mut Report) {
    report.ok("format", format!("{FORMAT}, supported by this version"));
}

fn newer(report: &mut Report, file: &str, found: u32) {
    let what = format!("{file} has format {found}; this version supports formats up to {FORMAT}");
    let advice = "the data is intact: use the newer version of turno that wrote it, or another directory with --data";
    report.error("format", Code::DataNewer, what).advise(advice);
}

fn unreadable(report: &mut Report, error: &OpenError) {
    let cause = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    let advice = "run this command as the user who runs the broker; if the disk is failing, copy the directory first";
    report.error("store", Code::Io, format!("{error}{cause}")).advise(advice);
}

fn well(report: &mut Report, log: Log) {
    let Log { segments, batches, records, usage, end: (file, offset), .. } = log;
    tell_format(report);
    let what = format!("{segments} checked: {batches} batches, {records} records, all valid");
    report.ok("segments", what);
    let (live, taken) = (size::short(usage.live_bytes), size::short(usage.disk_bytes));
    let what = format!("{} stored, including dead letters; {live} live of {taken} on disk", usage.numbered);
    report.ok("messages", what);
    if log.is_torn {
        let what = format!("{file} ends at byte {offset} with an incomplete batch");
        let advice = "normal after a crash: the batch was never acknowledged; the next start overwrites it";
        report.warn("end", what, advice).at(&file, offset);
    } else {
        report.ok("end", format!("{file}, byte {offset}")).at(&file, offset);
    }
    report.store = Some(StoreBody {
        format: FORMAT,
        segments,
        batches,
        records,
        messages: usage.numbered,
        live_bytes: usage.live_bytes,
        disk_bytes: usage.disk_bytes,
        last_commit: log.last_commit.0,
        epoch: log.epoch.0,
        torn: log.is_torn,
    });
}

fn tell_dead(report: &mut Report, dead: Result<BTreeMap<QueueName, Dead>, ReadError>, most: u64) {
    let dead = match dead {
        Ok(dead) => dead,
        Err(error) => {
            let advice = "check the disk: data that was readable a moment ago is not";
            report.warn("dead", format!("cannot count dead letters: {error}"), advice);
            return;
        }
    };
    let all = dead.values().map(|dead| dead.count).sum();
    let many: Vec<(&str, Dead)> =
        dead.iter().filter(|(_, dead)| dead.count > most).map(|(queue, dead)| (queue.as_str(), *dead)).collect();
    dead::look(all, many.into_iter(), most, report);
}

fn damaged(report: &mut Report, directory: &Path, (file, offset, wrong): (&str, u64, DamageKind), damage: Damage) {
    // The file that a missing segment is missed from has no fault of its own.
    let missed = if let DamageKind::Missing(segment) = wrong { Some(segment) } else { None };
    let finding = match missed {
        Some(_) => report.error("segments", Code::DataDamaged, format!("{wrong}: no file has it")),
        None => {
            let what = format!("{file} is damaged at byte {offset}: {wrong}");
            report.error("segments", Code::DataDamaged, what).at(file, offset)
        }
    };
    finding.advise(match wrong {
        DamageKind::Twice(_) => "one of them is a copy: move it out of the directory".to_owned(),
        _ => format!(
            "delete and change nothing; copy {0}, then restore it from a backup; to continue without it: turno \
                 serve --data ANOTHER_DIRECTORY",
            directory.display()
        ),
    });
    let places = damage.places.iter().filter(|place| (place.file.as_str(), place.from) != (file, offset));
    for place in places.clone().take(PLACES_MAX) {
        let what = format!("{} is damaged from byte {} to {}", place.file, place.from, place.until);
        report.error("segments", Code::DataDamaged, what).at(&place.file, place.from);
    }
    let more = places.count().saturating_sub(PLACES_MAX);
    if more > 0 {
        report.error("segments", Code::DataDamaged, format!("{more} more damaged locations; --json lists all of them"));
    }
    for segment in damage.missing.iter().filter(|segment| Some(**segment) != missed) {
        report.error("segments", Code::DataDamaged, format!("segment {segment} of the log is missing"));
    }
    if !matches!(wrong, DamageKind::Twice(_)) {
        report.error("messages", Code::DataDamaged, lost(&damage));
    }
    report.damage = Some(body(damage));
}

fn lost(damage: &Damage) -> String {
    let Damage { missing, lost_batches, whole_batches, whole_records, .. } = damage;
    let lost = match lost_batches {
        0 if missing.is_empty() => "the number of lost batches is unknown".to_owned(),
        0 => "the contents of the missing segments are lost".to_owned(),
        // Of segments before the first and after the last that are there, nobody knows how many they had.
        1 if missing.is_empty() => "at least 1 batch is lost".to_owned(),
        many if missing.is_empty() => format!("{many} batches are lost"),
        many => format!("at least {many} batches are lost"),
    };
    format!("{lost} (sends and settlements); {whole_batches} batches with {whole_records} records are valid")
}

fn body(damage: Damage) -> DamageBody {
    let place = |place: turno_store::DamagedPart| PlaceBody { file: place.file, from: place.from, until: place.until };
    DamageBody {
        places: damage.places.into_iter().map(place).collect(),
        missing: damage.missing,
        lost_batches: damage.lost_batches,
        whole_batches: damage.whole_batches,
        whole_records: damage.whole_records,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_said_as_exactly_as_it_is_known() {
        let told = |lost_batches, missing: &[u64]| {
            let mut damage = Damage::default();
            (damage.lost_batches, damage.missing) = (lost_batches, missing.to_vec());
            lost(&damage).split(" (").next().unwrap().to_owned()
        };
        assert_eq!(told(1, &[]), "at least 1 batch is lost");
        assert_eq!(told(7, &[]), "7 batches are lost");
        assert_eq!(told(7, &[3]), "at least 7 batches are lost");
        assert_eq!(told(0, &[]), "the number of lost batches is unknown");
        assert_eq!(told(0, &[1]), "the contents of the missing segments are lost");
    }
}
