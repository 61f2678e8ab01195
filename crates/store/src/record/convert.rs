//! Conversions of texts and lists that both directions use.

use std::borrow::Cow;

pub(super) fn all<T, U: From<T>>(list: Vec<T>) -> Vec<U> {
    list.into_iter().map(U::from).collect()
}

pub(super) fn owned(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned)
}

pub(super) fn borrow_all<'a, T, U: From<&'a T>>(list: &'a [T]) -> Vec<U> {
    list.iter().map(U::from).collect()
}
