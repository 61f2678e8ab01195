//! A newer list from the public model data. Never needed: without it the built-in list stands.

use std::time::Duration;

use domain::Failure;

use super::import;
use crate::network::Network;

/// Where the public model data is.
pub const SOURCE: &str = "https://models.dev/api.json";

const FETCH_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The data at `url` as the text of a list, to be cached and given to [`super::Catalog::parse`].
pub async fn fetch(network: &Network, url: &str) -> Result<String, Failure> {
    let failed = |why: &str| {
        Failure::provider(format!("The list of models could not be renewed: {why}."))
            .hint("The list that came with Dragoman is used; check the network or try again later.")
    };
    let reading = async {
        let client = network.client(url).await?;
        let mut response =
            client.get(url).send().await.map_err(|_| failed("its server cannot be reached"))?;
        if !response.status().is_success() {
            return Err(failed(&format!("its server answered with {}", response.status())));
        }
        let mut bytes = Vec::new();
        while let Some(more) = response.chunk().await.map_err(|_| failed("the connection broke"))? {
            bytes.extend_from_slice(&more);
            if bytes.len() > MAX_BYTES {
                return Err(failed("it is too large"));
            }
        }
        let json = String::from_utf8(bytes).map_err(|_| failed("it is not text"))?;
        import(&json).map_err(|_| failed("it is not in the form that is known"))
    };
    tokio::time::timeout(FETCH_TIMEOUT, reading).await.unwrap_or_else(|_| Err(failed("it took too long")))
}
