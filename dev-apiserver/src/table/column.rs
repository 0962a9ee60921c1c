//! Columns, and those that most kinds have.

use serde_json::{Value, json};

use super::age::since;
use crate::object;

/// A column.
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    /// 1: only shown with `-o wide`.
    priority: u8,
    cell: fn(&Value) -> Value,
}

/// A column of strings.
pub(super) const fn text(name: &'static str, cell: fn(&Value) -> Value) -> Column {
    Column { name, kind: "string", priority: 0, cell }
}

/// A column of strings for `-o wide`.
pub(super) const fn wide(name: &'static str, cell: fn(&Value) -> Value) -> Column {
    Column { name, kind: "string", priority: 1, cell }
}

/// A column of numbers.
pub(super) const fn number(name: &'static str, cell: fn(&Value) -> Value) -> Column {
    Column { name, kind: "integer", priority: 0, cell }
}

/// A column of booleans.
pub(super) const fn boolean(name: &'static str, cell: fn(&Value) -> Value) -> Column {
    Column { name, kind: "boolean", priority: 0, cell }
}

/// A column of times.
pub(super) const fn date(name: &'static str, cell: fn(&Value) -> Value) -> Column {
    Column { name, kind: "date", priority: 0, cell }
}

pub(super) const NAME: Column = text("Name", |object| object::name(object).into());
pub(super) const AGE: Column = text("Age", |object| since(&object["metadata"]["creationTimestamp"]).into());

// === impl Column ===

impl Column {
    pub(super) fn definition(&self) -> Value {
        let format = if self.name == "Name" { "name" } else { "" };
        json!({"name": self.name, "type": self.kind, "format": format, "description": "", "priority": self.priority})
    }

    pub(super) fn cell(&self, object: &Value) -> Value {
        (self.cell)(object)
    }
}
