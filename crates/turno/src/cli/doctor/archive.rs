//! The archive in the directory: its format, its unreadable parts, and files that were set aside. A broker starts all
//! the same, unless a newer version wrote there.

use std::io::{self, ErrorKind};
use std::path::Path;

use turno_proto::model::Code;
use turno_store::archive::{ArchiveInspection, FileProblem, Flaw, inspect, inspect_names};
use turno_store::disk::FsDisk;

use super::Report;
use super::directory::is_taken;
use crate::cli::size;

/// Damaged places that get a line each.
const PLACES_MAX: usize = 10;

pub(super) fn look(data: &Path, report: &mut Report) {
    let directory = data.join("archive");
    let mut disk = FsDisk::to_read(directory.clone());
    let is_running = is_taken(data).unwrap_or(true);
    match if is_running { inspect_names(&mut disk) } else { inspect(&mut disk) } {
        Ok(found) => tell(report, &directory, found, is_running),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => unreadable(report, &error),
    }
}

fn unreadable(report: &mut Report, error: &io::Error) {
    let advice = "run this command as the user who runs the broker";
    report.error("archive", Code::Io, format!("cannot list the archive: {error}")).advise(advice);
}

fn tell(report: &mut Report, directory: &Path, found: ArchiveInspection, is_running: bool) {
    let ArchiveInspection { files, bytes, records, newer, troubles } = found;
    for (file, format) in newer {
        let what = format!("{file} has format {format}, which this version does not support");
        let advice =
            "the data is intact: use the newer version of turno that wrote it, or another directory with --data";
        report.error("archive", Code::DataNewer, what).advise(advice).file = Some(file);
    }
    if files > 0 {
        let read = if is_running { String::new() } else { format!("; {records} valid records") };
        let what = format!("{} in {files} files: output, results and uploads of jobs{read}", size::short(bytes));
        report.ok("archive", what);
    }
    let mut places = 0_usize;
    for FileProblem { file, from, until, flaw } in troubles {
        match &flaw {
            Flaw::SetAside(aside) => {
                let what = format!("{file} could not be read and was set aside as {aside}");
                let advice = format!(
                    "Turno never deletes it; to clear this message, move the file out of {}",
                    directory.display()
                );
                report.error("archive", Code::ArchiveDamaged, what).advise(advice).file = Some(aside.clone());
            }
            Flaw::Torn => {
                let what = format!("{file} ends at byte {from} with an incomplete record");
                report.warn("archive", what, "normal after a crash: it was never acknowledged").at(&file, from);
            }
            Flaw::Io(why) => {
                let advice = "check the disk and the file's permissions; the broker starts without this file";
                let what = format!("{file} cannot be read: {why}");
                report.error("archive", Code::ArchiveDamaged, what).advise(advice).file = Some(file);
            }
            _ if places >= PLACES_MAX => places += 1,
            Flaw::Header | Flaw::Index => {
                places += 1;
                let advice = "nothing is lost; check the disk for errors";
                report.warn("archive", format!("{file}: {flaw}"), advice).at(&file, from);
            }
            Flaw::Record | Flaw::Gap | Flaw::Hash => {
                places += 1;
                let what = format!("{file} is damaged from byte {from} to {until}: {flaw}");
                let advice = "`turno job logs` and `turno job result` list the losses; check the disk for errors";
                report.error("archive", Code::ArchiveDamaged, what).advise(advice).at(&file, from);
            }
        }
    }
    if places > PLACES_MAX {
        let what = format!("{} more damaged locations", places - PLACES_MAX);
        report.error("archive", Code::ArchiveDamaged, what);
    }
}
