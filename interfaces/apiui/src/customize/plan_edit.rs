//! The edits of a plan, in the JSON form in which a language model may return them.

use crate::plan::{Calculation, Condition, Constant, Layout, Theme, Tint, ValueFormat};
use serde::{Deserialize, Serialize};

/// A change to a plan. Views and fields are named as the interface shows them, or by their own names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum PlanEdit {
    /// Without fields: over every column that is in view.
    AddSearch {
        view: String,
        #[serde(default)]
        fields: Vec<String>,
    },
    RemoveSearch {
        view: String,
    },
    AddFilter {
        view: String,
        field: String,
    },
    RemoveFilter {
        view: String,
        field: String,
    },
    Sort {
        view: String,
        field: String,
        #[serde(default)]
        descending: bool,
    },
    ClearSort {
        view: String,
    },
    /// Without a view: everywhere.
    PageSize {
        #[serde(default)]
        view: Option<String>,
        size: u32,
    },
    Pagination {
        on: bool,
    },
    ShowColumn {
        view: String,
        field: String,
    },
    HideColumn {
        view: String,
        field: String,
    },
    RenameColumn {
        view: String,
        field: String,
        label: String,
    },
    /// Position 0 is the first.
    MoveColumn {
        view: String,
        field: String,
        position: usize,
    },
    Layout {
        #[serde(default)]
        view: Option<String>,
        layout: Layout,
    },
    Theme {
        theme: Theme,
    },
    Title {
        title: String,
    },
    RenameView {
        view: String,
        title: String,
    },
    RemoveView {
        view: String,
    },
    RestoreView {
        view: String,
    },
    ReadOnly {
        on: bool,
    },
    /// Without a field: no grouping.
    GroupBy {
        view: String,
        #[serde(default)]
        field: Option<String>,
    },
    /// The heading of a view in the menu; without one it stands under no heading.
    GroupView {
        view: String,
        #[serde(default)]
        group: String,
    },
    DescribeView {
        view: String,
        note: String,
    },
    /// The field that probably identifies an item. The page still asks before it uses the field.
    Key {
        view: String,
        parameter: String,
        field: String,
    },
    /// A fixed filter: rows that do not meet the condition are not shown.
    FixFilter {
        view: String,
        condition: Condition,
    },
    /// Takes fixed filters away: those of a field, or all.
    ClearFilters {
        view: String,
        #[serde(default)]
        field: Option<String>,
    },
    /// Conditions under a name, which people switch to.
    SaveView {
        view: String,
        name: String,
        conditions: Vec<Condition>,
    },
    RemoveSavedView {
        view: String,
        name: String,
    },
    /// Without a format the values are shown as they are sent.
    Format {
        view: String,
        field: String,
        #[serde(default)]
        format: Option<ValueFormat>,
    },
    Color {
        view: String,
        condition: Condition,
        tint: Tint,
        #[serde(default)]
        whole_row: bool,
    },
    ClearColors {
        view: String,
    },
    /// The name of the item that a key leads to, in place of the key.
    ShowName {
        view: String,
        field: String,
        on: bool,
    },
    /// A column of its own. Without fields and with a number last: `constant`.
    ComputeColumn {
        view: String,
        label: String,
        how: Calculation,
        fields: Vec<String>,
        #[serde(default)]
        constant: Option<f64>,
    },
    /// A button; the operation is named by its signature or title.
    AddAction {
        view: String,
        label: String,
        operation: String,
        #[serde(default)]
        constants: Vec<Constant>,
    },
    RemoveAction {
        view: String,
        label: String,
    },
    /// The state before the last change.
    Undo,
    /// Code of a free change. Without code the slot is empty.
    Slot {
        slot: String,
        #[serde(default)]
        code: String,
    },
}
