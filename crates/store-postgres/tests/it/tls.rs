//! The certificate of a server is verified: its authority and its name.

use domain::Store;
use domain::store::ListFilter;
use testkit::PostgresServer;

use crate::store_at;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_server_with_a_verified_certificate_is_used() {
    let Some(server) = PostgresServer::start_with_tls() else { return };
    server.database("tls");
    let authority = server.folder().join("ca.pem").display().to_string().replace('/', "%2F");
    let address = |host: &str, rest: &str| {
        format!("postgres://me@{host}:{}/tls?sslmode=verify-full{rest}", server.port())
    };
    let trusted = format!("&sslrootcert={authority}");
    let store = store_at(&address("localhost", &trusted));
    store.list(ListFilter::default()).await.unwrap();
    assert_eq!(server.query("tls", "SELECT count(*) > 0 FROM pg_stat_ssl WHERE ssl"), "t");
    for wrong in [address("localhost", ""), address("127.0.0.1", &trusted)] {
        let failure = store_at(&wrong).list(ListFilter::default()).await.unwrap_err();
        assert!(failure.message.contains("certificate"), "{failure}");
    }
}
