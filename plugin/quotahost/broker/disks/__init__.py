"""This package looks at this broker's file stores: the volumes of its log directories, their fill, and their topics."""
