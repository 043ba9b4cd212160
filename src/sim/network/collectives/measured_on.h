/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links of a node as they were where collectives were timed, as topology files have them.
 */
#pragma once

#include "base/json/json.h"
#include "sim/network/pcie.h"

/* A link of a node as it was where a collective was timed; bandwidth 0: not said, or there is none.
 */
typedef struct {
    double bandwidth; /* nocheck:unit: bytes/s, named as in the file */
    LhTime latency_ps;
} LhMeasuredLink;

/* A level of PCIe as it was there. */
typedef struct {
    char *name;
    double up; /* nocheck:unit: bytes/s, named as in the file; 0: never the limit */
    LhTime latency_ps;
} LhMeasuredLevel;

/* The links that a collective was timed on. */
typedef struct {
    LhMeasuredLink scale_up, pcie;
    GArray *levels;   /* of LhMeasuredLevel: those of "pcie" as a file has them; NULL: none */
    char *p2p;        /* likewise */
    LhPcieRates tree; /* goes with @pcie; levels and reach follow from what a file has */
} LhMeasuredOn;

extern const LhField lh_measured_on_fields[]; /* of an LhMeasuredOn */

/* What a row was measured on, as files have it: nothing, if nothing is said of it, or if it is what
 * the node's "measured_on" says (NULL: the node has none). Strings are borrowed; the caller unrefs
 * the levels. */
LhMeasuredOn lh_measured_on_said(const LhMeasuredOn *on, const LhMeasuredOn *of_node);
