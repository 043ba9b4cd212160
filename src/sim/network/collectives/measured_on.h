/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links of a node on which collectives were measured, as in topology files.
 */
#pragma once

#include "base/json/json.h"
#include "sim/network/pcie.h"

/* A link of a node where a collective was measured; bandwidth 0: not stated, or none. */
typedef struct {
    double bandwidth; /* nocheck:unit: bytes/s, named as in the file */
    LhTime latency_ps;
} LhMeasuredLink;

/* A PCIe level where a collective was measured. */
typedef struct {
    char *name;
    double up; /* nocheck:unit: bytes/s, named as in the file; 0: never the limit */
    LhTime latency_ps;
} LhMeasuredLevel;

/* The links that a collective was timed on. */
typedef struct {
    LhMeasuredLink scale_up, pcie;
    GArray *levels;   /* of LhMeasuredLevel: levels of "pcie" as in the file; NULL: none */
    char *p2p;        /* likewise */
    LhPcieRates tree; /* belongs to @pcie; levels and reach are derived from the file */
} LhMeasuredOn;

extern const LhField lh_measured_on_fields[]; /* of an LhMeasuredOn */

/* The links of a row as written to files: empty if they are not stated, or if they equal the node's
 * "measured_on" (NULL: the node has none). Strings are borrowed; the caller unrefs the levels. */
LhMeasuredOn lh_measured_on_said(const LhMeasuredOn *on, const LhMeasuredOn *of_node);
