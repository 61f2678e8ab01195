//! TLS for connections to a server on another machine: rustls with the certificates that the system trusts.
//!
//! Invariant: the name in the server's certificate is verified.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use domain::Failure;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

use crate::address::Address;

#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    pub(crate) fn new(address: &Address) -> Result<Self, Failure> {
        let mut authorities = Vec::new();
        for path in &address.authorities {
            let unreadable = || {
                Failure::config(format!("The certificate authorities in {} cannot be read.", path.display()))
            };
            let pem = std::fs::read(path).map_err(|_| unreadable())?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                authorities.push(certificate.map_err(|_| unreadable())?);
            }
        }
        let broken = |error: rustls::Error| Failure::config(format!("TLS could not be set up: {error}."));
        Ok(Self(Arc::new(tls::client_of_system(authorities).map_err(broken)?)))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Encrypted<S>;
    type TlsConnect = Connector;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Connector> {
        let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other)?;
        Ok(Connector { config: self.0.clone(), name })
    }
}

pub(crate) struct Connector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Connector {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let connector = tokio_rustls::TlsConnector::from(self.config);
            Ok(Encrypted(connector.connect(self.name, stream).await?))
        })
    }
}

pub(crate) struct Encrypted<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
