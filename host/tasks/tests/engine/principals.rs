//! A task answers to its owner alone, and an owner has only so many.

use std::time::Duration;

use longshore_tasks::{Call, EngineError, Principal, Status, TaskId};

use crate::world::*;

#[tokio::test]
async fn t11_a_foreign_id_is_answered_as_an_unknown_one() {
    let world = World::new();
    let engine = world.engine().await;
    let id = create(&engine, "ask:a finish").await;
    reach_question(&engine, &id, "a").await;
    let writes = world.writes();
    let unknown = TaskId::random().unwrap();
    for other in [
        Principal::new("other"),
        Principal::anonymous(),
        Principal::new(""),
    ] {
        let answers = vec![("a".to_owned(), "stolen".to_owned())];
        assert!(is_not_found(&engine.get(&id, &other).await));
        assert!(is_not_found(
            &engine.answer(&id, &other, answers.clone()).await
        ));
        assert!(is_not_found(&engine.cancel(&id, &other).await));
        let texts = [id, unknown].map(|id| (id, other.clone()));
        let mut said = Vec::new();
        for (id, who) in texts {
            said.push(engine.get(&id, &who).await.unwrap_err().to_string());
        }
        assert_eq!(said[0], said[1]);
    }
    assert_eq!(world.writes(), writes, "nothing changed");
    assert_eq!(view(&engine, &id).await.status, Status::InputRequired);
    answer(&engine, &id, &[("a", "1")]).await;
    reach(&engine, &id, Status::Completed).await;
}

#[tokio::test]
async fn unfinished_tasks_of_one_principal_are_capped() {
    let mut world = World::new();
    world.settings.open_per_principal_max = 3;
    let engine = world.engine().await;
    let other = Call {
        principal: Principal::new("other"),
        ..call("hang")
    };
    let asking = create(&engine, "ask:a finish").await;
    create(&engine, "hang").await;
    let cancelled = create(&engine, "hang").await;
    let refused = engine.create(call("hang"), birth()).await;
    assert!(
        matches!(refused, Err(EngineError::Full { open_max: 3 })),
        "{refused:?}"
    );
    engine.create(other, birth()).await.unwrap();

    // An end makes room, whichever it is.
    reach_question(&engine, &asking, "a").await;
    answer(&engine, &asking, &[("a", "1")]).await;
    reach(&engine, &asking, Status::Completed).await;
    create(&engine, "hang").await;
    cancel(&engine, &cancelled).await;
    world.clock.advance_ms(1_000);
    reach(&engine, &cancelled, Status::Cancelled).await;
    create(&engine, "hang").await;
    assert!(engine.create(call("hang"), birth()).await.is_err());

    // What is unfinished counts after a start too.
    engine.shutdown(Duration::ZERO).await;
    let next = world.engine().await;
    assert!(next.create(call("hang"), birth()).await.is_err());
    world.clock.advance_ms(3_600_000);
    until("room", async || {
        next.create(call("finish"), birth()).await.is_ok()
    })
    .await;
}
