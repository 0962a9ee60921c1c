//! The OCI archives.

use std::path::Path;

use anyhow::ensure;
use atoll_tests::Image;

use super::{ARCHS, VERSION, output};

/// The maximum size of an image, in bytes.
const LIMIT: u64 = 20_000_000;

pub(super) fn are_for_both_architectures(release: &Path) -> anyhow::Result<()> {
    for program in ["proxy-agent", "proxy-server"] {
        let archive = release.join(format!("{program}-{VERSION}-oci.tar"));
        for arch in ARCHS {
            let image = Image::of(&archive, Some(arch.short))?;
            ensure!(image.reference == format!("localhost/atoll/{program}:{VERSION}"), "{}", image.reference);
            let path = format!("/{program}");
            ensure!(image.files()? == [Path::new(&path)], "{:?}", image.files());
            ensure!(image.config["User"] == "65532:65532" && image.config["Entrypoint"] == serde_json::json!([path]));

            let file = image.root().join(program);
            let size = file.metadata()?.len();
            ensure!(size <= LIMIT, "{program} for {} has {size} bytes", arch.name);
            arch.check(&file)?;
            let version = output(arch.command(&file).arg("--version"))?;
            ensure!(version == format!("{program} {VERSION}\n"), "{version}");
        }
    }
    Ok(())
}
