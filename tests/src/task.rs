//! A task, as its client sees it.

use crate::client::{self, Message, Reply};
use crate::server::Server;
use crate::wait::{PATIENCE, wait_for};
use serde_json::Value;

/// A task of a server.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    server: &'a Server,
    /// Its id.
    pub id: String,
}

impl<'a> Task<'a> {
    /// A task of this server, known by its id only.
    pub fn new(server: &'a Server, id: &str) -> Self {
        let id = id.to_owned();
        Self { server, id }
    }

    /// Its handle is known; what is it now?
    pub fn get(&self) -> Value {
        let reply = self.server.send(&Message::task("tasks/get", &self.id));
        let result = reply.result();
        assert_eq!(result["taskId"], self.id.as_str());
        result.clone()
    }

    /// Answers questions.
    pub fn update(&self, answers: Value) -> Reply {
        let message = Message::task("tasks/update", &self.id);
        self.server.send(&message.param("inputResponses", answers))
    }

    /// Wishes it to end.
    pub fn cancel(&self) -> Reply {
        self.server.send(&Message::task("tasks/cancel", &self.id))
    }

    /// Waits until it has this status.
    ///
    /// # Panics
    /// If it comes to another end, or to none in time.
    pub fn wait(&self, status: &str) -> Value {
        wait_for(&format!("status {status}"), PATIENCE, || {
            let task = self.get();
            let now = task["status"].as_str().unwrap();
            let over = ["completed", "failed", "cancelled"].contains(&now);
            assert!(now == status || !over, "not {status}: {task:#}");
            (now == status).then_some(task)
        })
    }

    /// Waits for its questions: their keys, in order.
    pub fn wait_questions(&self) -> Vec<String> {
        let task = self.wait("input_required");
        let asked = task["inputRequests"].as_object().unwrap();
        asked.keys().cloned().collect()
    }

    /// Waits until it is asked by this key, and answers.
    pub fn answer(&self, key: &str, answer: Value) {
        wait_for(&format!("question {key}"), PATIENCE, || {
            let task = self.wait("input_required");
            task["inputRequests"].get(key).map(|_| ())
        });
        self.update(client::answer(key, answer)).result();
    }

    /// Waits for its result: the first text.
    pub fn wait_text(&self) -> String {
        let task = self.wait("completed");
        client::text_of(&task["result"]).to_owned()
    }
}
