"""The benchmark of publication and single flight: workloads, policies, records and the report from them."""
