#!/bin/sh
# Formats storage that is new, and becomes the broker: SIGTERM reaches it, and it stops cleanly.
# KAFKA_FORMAT_OPTIONS is for kafka-storage.sh, such as --standalone for a first controller of a dynamic quorum.
set -eu
/opt/kafka/bin/kafka-storage.sh format --ignore-formatted --cluster-id "$KAFKA_CLUSTER_ID" --config "$1" \
  ${KAFKA_FORMAT_OPTIONS:-}
exec /opt/kafka/bin/kafka-server-start.sh "$@"
