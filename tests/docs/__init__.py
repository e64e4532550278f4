"""Pages of docs/ whose parts are generated, and pages whose examples are run."""
