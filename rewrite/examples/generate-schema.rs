//! Writes `src/schema/generated.rs` and `src/schema/messages.rs` from the lists in `schema`.

#[path = "../schema/generate.rs"]
mod generate;
#[path = "../schema/generate_messages.rs"]
mod generate_messages;

fn main() -> std::io::Result<()> {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let references = std::fs::read_to_string(here.join("schema/kubernetes-1.36-references.tsv"))?;
    std::fs::write(here.join("src/schema/generated.rs"), generate::generate(&references))?;
    let messages = std::fs::read_to_string(here.join("schema/kubernetes-1.36-messages.tsv"))?;
    std::fs::write(here.join("src/schema/messages.rs"), generate_messages::generate(&messages))
}
