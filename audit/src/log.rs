//! The log file: takes events from the queue, and writes them in a thread for blocking work.

mod file;
mod locks;

use std::io;
use std::sync::Arc;

use ops::drain::Tasks;

use crate::budget::Account;
use crate::config;
use crate::lost::Lost;
use crate::queue::{Queue, Queued, Waiting, queue};
use file::LogFile;

pub(crate) use locks::Locks;

/// The number of events that may wait. A file that takes longer than these loses events.
const LENGTH: usize = 10_000;

/// The number of events that are written at once.
const AT_ONCE: usize = 1_000;

/// Opens a log, and starts its task, which ends when the queue is dropped.
pub(crate) fn open(
    settings: &config::Log,
    (account, lost): (Arc<Account>, Lost),
    locks: &Locks,
    tasks: &Tasks,
) -> io::Result<Queue> {
    let (file, lost) = (LogFile::open(settings, locks)?, Arc::new(lost));
    let (queue, queued) = queue(LENGTH, account, Arc::clone(&lost));
    let ending = tasks.clone();
    tasks.spawn("audit log", async move { write_all(queued, file, &lost, &ending).await });
    Ok(queue)
}

/// Writes events until no more come, or until the process ends.
async fn write_all(mut queued: Queued, file: LogFile, lost: &Lost, tasks: &Tasks) {
    let (mut file, mut is_ending) = (Some(file), false);
    loop {
        let mut events = Vec::new();
        if is_ending {
            queued.take_now(&mut events, AT_ONCE);
        } else {
            tokio::select! {
                _ = queued.take(&mut events, AT_ONCE) => {}
                () = tasks.cancelled() => {
                    is_ending = true;
                    continue;
                }
            }
        }
        let Some(writer) = file.take().filter(|_| !events.is_empty()) else { return };
        file = write(writer, events, lost).await;
    }
}

/// Writes events in another thread. `None` if that thread panicked.
async fn write(mut file: LogFile, events: Vec<Waiting>, lost: &Lost) -> Option<LogFile> {
    let written = tokio::task::spawn_blocking(move || {
        let failed = file.write(&events);
        (file, failed)
    });
    let (file, failed) = match written.await {
        Ok(written) => written,
        Err(error) => {
            lost.failed(0, &error);
            return None;
        }
    };
    if let Some((events, error)) = failed {
        lost.failed(events, &error);
    }
    Some(file)
}
