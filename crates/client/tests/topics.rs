//! Events through a real broker, over real sockets.

use turno_broker::Broker;
use turno_client::{Client, Code, Event, Filter, Received, Subscription};

async fn client(broker: &Broker) -> Client {
    Client::connect(&broker.url()).await.expect("connected")
}

async fn event(subscription: &mut Subscription) -> Event {
    match subscription.next().await {
        Some(Ok(Received::Event(event))) => event,
        other => panic!("{other:?}"),
    }
}

/// Proves S3.33 and S3.36: everyone who listens gets every event once and in order, the publisher too.
#[tokio::test]
async fn everyone_who_listens_hears_everything_in_order() {
    let broker = Broker::start_loopback().expect("a broker");
    let (publisher, other) = (client(&broker).await, client(&broker).await);
    let mut own = publisher.subscribe("news.*").await.expect("taken");
    let mut every = other.subscribe(">").await.expect("taken");
    let mut bytes = other.subscribe(Filter::prefix(b"news.s").unwrap()).end_on_loss().await.expect("taken");
    for number in 0..500 {
        publisher.publish("news.sport", format!("{number}")).await.expect("written");
    }
    publisher.publish("weather", "rain").header("k", "v").confirmed().await.expect("confirmed");
    for number in 0..500 {
        for subscription in [&mut own, &mut every, &mut bytes] {
            let heard = event(subscription).await;
            assert_eq!((heard.topic.as_str(), &heard.body[..]), ("news.sport", number.to_string().as_bytes()));
        }
    }
    let last = event(&mut every).await;
    assert_eq!((last.topic.as_str(), last.headers.get("k").map(String::as_str)), ("weather", Some("v")));
    drop(own);
    publisher.publish("news.art", "x").confirmed().await.expect("confirmed");
    assert_eq!(event(&mut every).await.topic.as_str(), "news.art");
    let subscribers = publisher.admin().subscribers().collect().await.expect("listed");
    assert_eq!(subscribers.len(), 1, "the publisher listens no more");
    assert_eq!(subscribers[0].filters_all, 2);
}

#[tokio::test]
async fn what_is_no_topic_is_refused_here() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    for topic in ["", "a b", "a.*", "a..b", &"x".repeat(256)] {
        assert_eq!(client.publish(topic, "x").await.expect_err("no topic").code(), Code::BadTopic, "{topic:?}");
    }
    assert_eq!(client.subscribe("a.>.b").await.expect_err("no filter").code(), Code::BadTopic);
}

/// The end of the client is the end of its subscriptions, and said.
#[tokio::test]
async fn a_closed_client_ends_its_subscriptions() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    let mut subscription = client.subscribe("x").await.expect("taken");
    client.close().await;
    assert!(matches!(subscription.next().await, Some(Err(_)) | None));
    assert!(subscription.next().await.is_none());
}

#[test]
fn a_program_without_async_listens_too() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = turno_client::blocking::Client::connect(broker.url()).expect("connected");
    let mut heard = client.subscribe("t.>").wait().expect("taken");
    client.publish("t.x", "hi").wait().expect("written");
    assert!(matches!(heard.next(), Some(Ok(Received::Event(event))) if event.body == "hi"));
}
