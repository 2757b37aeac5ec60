#!/bin/sh
# Gives the brokers' plugins and the pipeline their rights to quotahost's topics, and nobody else any. Call it with
# Kafka's tool and the way to connect, as a super user:
#
#   sh acls.sh kafka-acls.sh --bootstrap-server broker-1:9092 --command-config admin.properties
#
# Read and Write include Describe. Change the names of topics here if you changed them in the properties.
set -eu
plugins=User:quotahost
pipeline=User:quotahost-pipeline

"$@" --add --allow-principal "$plugins" --operation Read \
  --topic __quotahost_snapshots --topic __quotahost_cluster_volumes --topic __quotahost_shares
"$@" --add --allow-principal "$plugins" --operation Write --operation Create --operation DescribeConfigs \
  --topic __quotahost_snapshots --topic __quotahost_usage
# The plugins' consumers only ask which broker coordinates their group; they never join it.
"$@" --add --allow-principal "$plugins" --operation Describe --resource-pattern-type prefixed --group quotahost-

"$@" --add --allow-principal "$pipeline" --operation Read \
  --topic __quotahost_snapshots --topic __quotahost_usage --topic __quotahost_cluster_volumes --topic __quotahost_ticks
"$@" --add --allow-principal "$pipeline" --operation Write \
  --topic __quotahost_cluster_volumes --topic __quotahost_shares --topic __quotahost_refused --topic __quotahost_ticks
"$@" --add --allow-principal "$pipeline" --operation Create --operation DescribeConfigs \
  --topic __quotahost_snapshots --topic __quotahost_usage --topic __quotahost_cluster_volumes \
  --topic __quotahost_shares --topic __quotahost_refused --topic __quotahost_ticks
