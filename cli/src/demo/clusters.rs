//! The virtual clusters of the demo.

/// A virtual cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DemoCluster {
    pub(super) name: &'static str,
    /// The value of the label `location` of its nodes.
    pub(super) location: &'static str,
}

/// All of them.
pub(super) const CLUSTERS: [DemoCluster; 2] = [
    DemoCluster { name: "ke-beijing", location: "beijing" },
    DemoCluster { name: "ke-hangzhou", location: "hangzhou" },
];

// === impl DemoCluster ===

impl DemoCluster {
    /// The host name of its endpoint.
    pub(super) fn host(self) -> String {
        format!("{}.atoll.internal", self.name)
    }
}
