//! Private authorities, client certificates and proxies, against servers of our own.

use std::sync::Arc;

use domain::model::{ModelEvent, Models};
use domain::{Failure, FailureKind};
use futures_util::StreamExt;
use llm::{
    Api, KeySource, Network, NetworkSettings, ProviderConfig, Registry, RegistrySettings, RetryPolicy,
};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use testkit::FakeModel;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::support::{prompt, text_of};

/// An authority that nobody knows, a server's certificate of it and a client's.
struct Certificates {
    authority: String,
    authority_der: rcgen::Certificate,
    server: (rcgen::Certificate, KeyPair),
    client: (rcgen::Certificate, KeyPair),
}

fn certificates() -> Certificates {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let leaf = |usage| {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &issuer).unwrap(), key)
    };
    Certificates {
        authority: authority.pem(),
        authority_der: authority,
        server: leaf(ExtendedKeyUsagePurpose::ServerAuth),
        client: leaf(ExtendedKeyUsagePurpose::ClientAuth),
    }
}

/// Speaks TLS on a port of its own and passes everything on to the fake model.
async fn tls_front(fake: &FakeModel, certificates: &Certificates, ask_client: bool) -> String {
    let (certificate, key) = &certificates.server;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = if ask_client {
        let mut roots = RootCertStore::empty();
        roots.add(certificates.authority_der.der().clone()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let behind = fake.url().trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            tokio::spawn(async move {
                let Ok(mut tls) = acceptor.accept(socket).await else { return };
                let mut plain = TcpStream::connect(behind).await.unwrap();
                let _ = copy_bidirectional(&mut tls, &mut plain).await;
            });
        }
    });
    url
}

async fn ask(url: &str, network: NetworkSettings) -> Result<String, Failure> {
    let provider = ProviderConfig {
        name: "private".into(),
        api: Some(Api::Anthropic),
        url: Some(url.to_owned()),
        key: Some(KeySource::fixed("k")),
        ..ProviderConfig::default()
    };
    let settings = RegistrySettings {
        providers: vec![provider],
        network: Arc::new(Network::new(network)),
        retry_policy: RetryPolicy { attempts: 1, ..RetryPolicy::default() },
        ..RegistrySettings::default()
    };
    let model = Registry::new(settings).unwrap().find("private/m").unwrap();
    let events: Vec<_> = model.stream(prompt("Hi")).collect().await;
    let events: Result<Vec<ModelEvent>, Failure> = events.into_iter().collect();
    events.map(|events| text_of(&events))
}

#[tokio::test]
async fn a_private_authority_is_trusted_only_when_configured() {
    let (fake, certificates) = (FakeModel::start().await, certificates());
    let url = tls_front(&fake, &certificates, false).await;
    let refused = ask(&url, NetworkSettings::default()).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Provider);
    assert!(refused.message.contains("certificate"), "{refused}");
    assert_eq!(fake.requests().len(), 0);

    let trusted =
        NetworkSettings { authorities: vec![certificates.authority.into_bytes()], ..Default::default() };
    assert_eq!(ask(&url, trusted).await.unwrap(), "You said: Hi");
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_a_server_that_asks() {
    let (fake, certificates) = (FakeModel::start().await, certificates());
    let url = tls_front(&fake, &certificates, true).await;
    let authorities = vec![certificates.authority.clone().into_bytes()];
    let without = NetworkSettings { authorities, ..Default::default() };
    assert!(ask(&url, without.clone()).await.is_err());
    assert_eq!(fake.requests().len(), 0);

    let (certificate, key) = &certificates.client;
    let identity = format!("{}{}", certificate.pem(), key.serialize_pem());
    let with = NetworkSettings { identity: Some(identity.into_bytes()), ..without };
    assert_eq!(ask(&url, with).await.unwrap(), "You said: Hi");
}

/// A proxy that connects to the fake model whatever it is asked for, and tells what it was asked for.
async fn proxy(fake: &FakeModel) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let behind = fake.url().trim_start_matches("http://").to_owned();
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (behind, tell) = (behind.clone(), tell.clone());
            tokio::spawn(async move {
                let mut client = BufReader::new(socket);
                let mut first = String::new();
                client.read_line(&mut first).await.unwrap();
                let mut server = TcpStream::connect(behind).await.unwrap();
                // An absolute url in the first line: the path alone goes on.
                let path = first.split(' ').nth(1).and_then(|url| url.splitn(4, '/').nth(3)).unwrap_or("");
                server.write_all(format!("POST /{path} HTTP/1.1\r\n").as_bytes()).await.unwrap();
                let _ = tell.send(first.trim().to_owned());
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (url, told)
}

#[tokio::test]
async fn a_proxy_is_used_for_others_and_not_for_this_machine() {
    let fake = FakeModel::start().await;
    let (proxy, mut told) = proxy(&fake).await;
    let settings =
        NetworkSettings { proxy: Some(proxy), no_proxy: Some("direct.example".into()), ..Default::default() };
    assert_eq!(ask("http://model.example", settings.clone()).await.unwrap(), "You said: Hi");
    assert_eq!(told.recv().await.unwrap(), "POST http://model.example/v1/messages HTTP/1.1");

    assert_eq!(ask(fake.url(), settings.clone()).await.unwrap(), "You said: Hi");
    assert!(ask("http://direct.example", settings).await.is_err());
    assert!(told.try_recv().is_err(), "neither went through the proxy");
}
