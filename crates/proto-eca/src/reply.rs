//! The response that a method owes, typed by the method.
//!
//! Invariant: a method is answered with its own result or with an error; a notification is not answered.

use std::marker::PhantomData;

use rpc::{Fault, Responder};

use crate::wire::requests::Method;

/// Answers one call of the method `M`.
pub(crate) struct Reply<M: Method> {
    responder: Option<Responder>,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> Reply<M> {
    pub(crate) fn new(responder: Option<Responder>) -> Self {
        Self { responder, method: PhantomData }
    }

    /// The client waits for an answer.
    pub(crate) fn is_expected(&self) -> bool {
        self.responder.is_some()
    }

    pub(crate) fn into_responder(self) -> Option<Responder> {
        self.responder
    }

    /// Refuses a call before anything was done for it.
    pub(crate) fn refuse(self, fault: Fault) {
        if let Some(responder) = self.responder {
            responder.fail(fault);
        }
    }

    /// Refuses a call that lacks a parameter.
    pub(crate) fn missing(self, parameter: &str) {
        self.refuse(Fault::new(Fault::INVALID_PARAMS, format!("{parameter} is missing.")));
    }
}
