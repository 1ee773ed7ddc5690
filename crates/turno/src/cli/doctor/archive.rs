//! The archive in the directory: its format, what of it cannot be read, and files that were set aside. A broker starts all the
//! same, unless a newer version wrote there.

use std::io::{self, ErrorKind};
use std::path::Path;

use turno_proto::model::Code;
use turno_store::archive::{ArchiveInspection, Flaw, Trouble, inspect, inspect_names};
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
    let advice = "ask as the user that runs the broker";
    report.error("archive", Code::Io, format!("the archive cannot be listed: {error}")).advise(advice);
}

fn tell(report: &mut Report, directory: &Path, found: ArchiveInspection, is_running: bool) {
    let ArchiveInspection { files, bytes, records, newer, troubles } = found;
    for (file, format) in newer {
        let what = format!("{file} has format {format}, which this version does not know");
        let advice =
            "nothing is wrong with it: use the newer version of turno that wrote it, or another directory with --data";
        report.error("archive", Code::DataNewer, what).advise(advice).file = Some(file);
    }
    if files > 0 {
        let read = if is_running { String::new() } else { format!("; {records} records are whole") };
        let what = format!("{} in {files} files: output, results and uploads of jobs{read}", size::short(bytes));
        report.ok("archive", what);
    }
    let mut places = 0_usize;
    for Trouble { file, from, until, flaw } in troubles {
        match &flaw {
            Flaw::SetAside(aside) => {
                let what = format!("{file} could not be read and was set aside as {aside}");
                let advice = format!(
                    "nothing removes it; this line stays as long as the file is in {}: move it away when you have looked at it",
                    directory.display()
                );
                report.error("archive", Code::ArchiveDamaged, what).advise(advice).file = Some(aside.clone());
            }
            Flaw::Torn => {
                let what = format!("{file} ends at byte {from} with a record that was not completed");
                report.warn("archive", what, "normal after a crash: nobody was told that it is kept").at(&file, from);
            }
            Flaw::Io(why) => {
                let advice = "look at the disk and at who may read the file; a broker starts without it";
                let what = format!("{file} cannot be read: {why}");
                report.error("archive", Code::ArchiveDamaged, what).advise(advice).file = Some(file);
            }
            _ if places >= PLACES_MAX => places += 1,
            Flaw::Header | Flaw::Index => {
                places += 1;
                let advice = "nothing is lost; look at the disk: damage comes back";
                report.warn("archive", format!("{file}: {flaw}"), advice).at(&file, from);
            }
            Flaw::Record | Flaw::Gap | Flaw::Hash => {
                places += 1;
                let what = format!("{file} is damaged from byte {from} to {until}: {flaw}");
                let advice = "what is lost is named by `turno job logs` and `turno job result`; look at the disk";
                report.error("archive", Code::ArchiveDamaged, what).advise(advice).at(&file, from);
            }
        }
    }
    if places > PLACES_MAX {
        let what = format!("{} more places are damaged", places - PLACES_MAX);
        report.error("archive", Code::ArchiveDamaged, what);
    }
}
