#!/bin/sh
# Gives the brokers' plugins, the pipeline, `quotahost top` and `quotahost quotas` their rights to quotahost's topics, and nobody
# else any. Call it with Kafka's tool and the way to connect, as a super user:
#
#   sh acls.sh kafka-acls.sh --bootstrap-server broker-1:9092 --command-config admin.properties
#
# Read and Write include Describe. Change the names of topics here if you changed them in the properties.
set -eu
plugins=User:quotahost
pipeline=User:quotahost-pipeline
watchers=User:quotahost-top
operators=User:quotahost-quotas

"$@" --add --allow-principal "$plugins" --operation Read \
  --topic __quotahost_snapshots --topic __quotahost_cluster_volumes --topic __quotahost_shares --topic __quotahost_watch \
  --topic __quotahost_quotas
"$@" --add --allow-principal "$plugins" --operation Write --operation Create --operation DescribeConfigs \
  --topic __quotahost_snapshots --topic __quotahost_usage --topic __quotahost_looks
"$@" --add --allow-principal "$plugins" --operation Create --operation DescribeConfigs \
  --topic __quotahost_watch --topic __quotahost_quotas
# The plugins' consumers only ask which broker coordinates their group; they never join it.
"$@" --add --allow-principal "$plugins" --operation Describe --resource-pattern-type prefixed --group quotahost-

"$@" --add --allow-principal "$pipeline" --operation Read \
  --topic __quotahost_snapshots --topic __quotahost_usage --topic __quotahost_cluster_volumes --topic __quotahost_ticks
"$@" --add --allow-principal "$pipeline" --operation Write \
  --topic __quotahost_cluster_volumes --topic __quotahost_shares --topic __quotahost_refused --topic __quotahost_ticks
"$@" --add --allow-principal "$pipeline" --operation Create --operation DescribeConfigs \
  --topic __quotahost_snapshots --topic __quotahost_usage --topic __quotahost_cluster_volumes \
  --topic __quotahost_shares --topic __quotahost_refused --topic __quotahost_ticks

"$@" --add --allow-principal "$watchers" --operation Write --topic __quotahost_watch
"$@" --add --allow-principal "$watchers" --operation Read --topic __quotahost_looks
"$@" --add --allow-principal "$watchers" --operation Describe --resource-pattern-type prefixed --group quotahost-

"$@" --add --allow-principal "$operators" --operation Read --operation Write --operation Create --operation DescribeConfigs \
  --topic __quotahost_quotas
"$@" --add --allow-principal "$operators" --operation Describe --resource-pattern-type prefixed --group quotahost-

# Optional: rights beyond the table of docs/security.md. Take the # of a line away where you use what it is for.
#
# The task cordon. Whoever has this may change every broker's dynamic properties; docs/security.md says how to do without.
# "$@" --add --allow-principal "$plugins" --operation AlterConfigs --operation DescribeConfigs --cluster
#
# quotahost quotas for Kafka's own client quotas. For drift and export DescribeConfigs is enough; plan, which has Kafka
# validate the changes, and apply need AlterConfigs, too. With it the command also sees which suppliers the brokers have.
# "$@" --add --allow-principal "$operators" --operation AlterConfigs --operation DescribeConfigs --cluster
#
# explain --volume asks for the retention of topics as the broker, which is a super user here. It needs this where
# static.kafka.admin.* name another principal, which needs DescribeConfigs on the cluster besides, to find misspelt
# properties that are stored.
# "$@" --add --allow-principal User:NAME --operation DescribeConfigs --topic '*'
