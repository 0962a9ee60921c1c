//! The hub against a model: the whole history of a host, without partitions, window or positions.
//!
//! Each test case is a list of operations of the host, of the driver and of clients. After each operation of a client,
//! what the client got must be what the model derives from the history.

#[path = "model/client.rs"]
mod client;
#[path = "model/host.rs"]
mod host;
#[path = "model/operation.rs"]
mod operation;
#[path = "model/world.rs"]
mod world;

use operation::operations;
use proptest::prelude::*;
use world::World;

proptest! {
    // Some defects appeared only in thousands of cases. These take a few seconds.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: ProptestConfig::default().cases.max(4000),
        ..ProptestConfig::default()
    })]

    #[test]
    fn clients_get_what_the_history_says(operations in operations(200)) {
        let mut world = World::new(usize::MAX);
        for operation in operations {
            world.apply(operation);
        }
        world.end();
    }

    #[test]
    fn a_small_memory_ends_watches_and_loses_no_event(operations in operations(200), memory in 500..20_000_usize) {
        let mut world = World::new(memory);
        for operation in operations {
            world.apply(operation);
        }
        world.end();
    }
}
