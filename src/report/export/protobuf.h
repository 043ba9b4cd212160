/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire format of protobuf, as far as traces use it: fields that are numbers, or bytes with
 * their length in front. All of it appends to @out.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

void lh_proto_varint(GString *out, uint64_t value);
void lh_proto_uint(GString *out, uint32_t field, uint64_t value);
void lh_proto_fixed64(GString *out, uint32_t field, uint64_t value);
void lh_proto_double(GString *out, uint32_t field, double value);
void lh_proto_text(GString *out, uint32_t field, const char *text);

/* Begins a message; what is appended until lh_proto_end() is in it. Returns where it begins. */
gsize lh_proto_begin(GString *out, uint32_t field);
void lh_proto_end(GString *out, gsize begin);

/* Puts the length of what was appended since @begin in front of it. */
void lh_proto_prefix(GString *out, gsize begin);
