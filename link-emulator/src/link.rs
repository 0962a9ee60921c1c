//! Carries packets between two TUN devices.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tun_rs::{AsyncDevice, DeviceBuilder};

use crate::direction::{Direction, Fate};
use crate::mappings::{Mappings, Sender};
use crate::namespaces::Namespaces;
use crate::quality::Quality;

/// The longest IP packet.
const PACKET: usize = 1 << 16;

/// Distinguishes the devices of one process, until they are in their namespaces.
static LINKS: AtomicU64 = AtomicU64::new(0);

/// A network between two namespaces. It carries packets only while [`Link::run`] runs.
pub struct Link {
    cloud: End,
    site: End,
    mappings: Mappings,
    traffic: Traffic,
    namespaces: Namespaces,
}

/// One end: its device, and the packets on their way to it.
struct End {
    device: AsyncDevice,
    arriving: Direction,
}

/// What a link has carried so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The bytes of all packets that the cloud has sent, with their headers.
    pub cloud_bytes: u64,
    /// The bytes of all packets that the site has sent.
    pub site_bytes: u64,
    /// The packets that were lost on their way, also by the NAT.
    pub lost: u64,
    /// The packets for which the queue had no space.
    pub refused: u64,
}

// === impl Link ===

impl Link {
    /// Makes the namespaces `NAME-cloud` and `NAME-site` with a device in each.
    ///
    /// # Errors
    /// The user is not root, or the namespaces exist.
    pub fn open(name: &str) -> anyhow::Result<Self> {
        let namespaces = Namespaces::create(name)?;
        let number = LINKS.fetch_add(1, Ordering::Relaxed);
        let device = |end: &str| {
            let name = format!("at{}{end}{number}", std::process::id());
            let device = DeviceBuilder::new().name(&name).enable(false).build_async();
            anyhow::Ok((device.with_context(|| format!("cannot make the TUN device {name}"))?, name))
        };
        let ((cloud, cloud_name), (site, site_name)) = (device("c")?, device("s")?);
        namespaces.attach(&cloud_name, &site_name)?;
        let end = |device, seed| End { device, arriving: Direction::new(Instant::now(), seed) };
        let (cloud, site) = (end(cloud, 1), end(site, 2));
        Ok(Self { cloud, site, mappings: Mappings::default(), traffic: Traffic::default(), namespaces })
    }

    /// The namespaces of its ends.
    #[must_use]
    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// Carries packets until the sender of `quality` is dropped. Each change is effective from the next packet on, and
    /// `carried` then has what the link has carried before it.
    ///
    /// # Errors
    /// A device fails, or ip(8).
    pub async fn run(
        mut self,
        mut quality: watch::Receiver<Quality>,
        carried: &watch::Sender<Traffic>,
    ) -> anyhow::Result<()> {
        let (mut from_cloud, mut from_site) = (vec![0; PACKET], vec![0; PACKET]);
        let mut now = *quality.borrow_and_update();
        self.namespaces.set_mtu(now.mtu)?;
        loop {
            let due = [&self.cloud, &self.site].into_iter().filter_map(|end| end.arriving.due()).min();
            tokio::select! {
                changed = quality.changed() => {
                    carried.send_replace(self.traffic);
                    if changed.is_err() {
                        return Ok(());
                    }
                    now = *quality.borrow_and_update();
                    self.namespaces.set_mtu(now.mtu)?;
                }
                () = wait(due) => {
                    self.cloud.deliver().await?;
                    self.site.deliver().await?;
                }
                length = self.cloud.device.recv(&mut from_cloud) => {
                    let packet = from_cloud.get(..length?).unwrap_or_default();
                    self.enter(packet, Sender::Cloud, &now);
                }
                length = self.site.device.recv(&mut from_site) => {
                    let packet = from_site.get(..length?).unwrap_or_default();
                    self.enter(packet, Sender::Site, &now);
                }
            }
        }
    }

    /// A packet enters the network.
    fn enter(&mut self, packet: &[u8], sender: Sender, quality: &Quality) {
        let now = Instant::now();
        let (to, bytes) = match sender {
            Sender::Cloud => (&mut self.site, &mut self.traffic.cloud_bytes),
            Sender::Site => (&mut self.cloud, &mut self.traffic.site_bytes),
        };
        *bytes += u64::try_from(packet.len()).unwrap_or(u64::MAX);
        // A packet that the link loses also renews the mapping of a NAT at the site, or not: it makes no difference here.
        if !self.mappings.admit(now, packet, sender, quality.nat_expiry()) {
            self.traffic.lost += 1;
            return;
        }
        match to.arriving.push(now, packet, quality) {
            Fate::Sent => {}
            Fate::Lost => self.traffic.lost += 1,
            Fate::Full => self.traffic.refused += 1,
        }
    }
}

// === impl End ===

impl End {
    /// Hands over what has arrived.
    async fn deliver(&mut self) -> anyhow::Result<()> {
        while let Some(packet) = self.arriving.pop(Instant::now()) {
            self.device.send(&packet).await.context("cannot write to a TUN device")?;
        }
        Ok(())
    }
}

/// Waits until then, or forever.
async fn wait(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
