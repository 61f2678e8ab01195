//! The tools that a server offers now.

use std::sync::Arc;

use domain::tool::Tool;

use crate::resources::ResourceTool;
use crate::server_state::ServerState;
use crate::tool::McpTool;

impl ServerState {
    pub(crate) fn tools(self: &Arc<Self>) -> Vec<Arc<dyn Tool>> {
        let tool = |definition| -> Arc<dyn Tool> { Arc::new(McpTool { state: self.clone(), definition }) };
        self.refresh_old_lists();
        let offer = self.offer();
        let reader = offer.reads_resources();
        let mut tools: Vec<Arc<dyn Tool>> = offer.tools.into_iter().map(tool).collect();
        if reader {
            tools.push(Arc::new(ResourceTool::new(self.clone())));
        }
        tools
    }
}
