/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's topology XML in memory: filled by nccl_xml.c, evaluated by nccl_graph.c.
 */
#pragma once

#include "import/cluster/pcie_tree.h"

#define LH_XML_DEPTH_MAX 32
#define LH_XML_LINKS_MAX 64 /* of a GPU to one target */

typedef struct {
    char *bus;                       /* of its PCIe function */
    char *name;                      /* of a NIC; NULL: unknown */
    guint host, cpu;                 /* indices */
    uint32_t path[LH_XML_DEPTH_MAX]; /* indices of the enclosing elements, outermost first */
    guint depth;
    guint line;
    uint64_t switched;           /* NVLinks to a switch */
    GArray *links;               /* of LhXmlLink, to other GPUs */
    uint64_t capability, number; /* GPU number as CUDA counts */
    double pcie;                 /* nocheck:unit: bytes/s; 0: unknown */
    double wire;                 /* nocheck:unit: of a NIC, bytes/s */
} LhXmlDevice;

typedef struct {
    char *target; /* bus of a GPU */
    uint64_t count;
    int line, column; /* end of the element */
} LhXmlLink;

/* An element that encloses GPUs. */
typedef struct {
    bool is_pci;
    bool is_parted; /* a switch that may consist of several PCIe switches */
    double rate;    /* of the link to its parent, bytes/s; nocheck:unit: as in the file */
} LhXmlElement;

/* A CPU: one for each NUMA node and host. */
typedef struct {
    guint host;
    char *numa; /* NULL: unknown */
    char *arch, *vendor;
    LhToolCpu said;
    guint line;
} LhXmlCpu;

typedef struct {
    LhToolReader *r;
    GMarkupParseContext *context;
    uint32_t path[LH_XML_DEPTH_MAX];
    char *bus; /* of the current PCIe function */
    guint depth;
    GArray *elements;    /* of LhXmlElement */
    GArray *cpus;        /* of LhXmlCpu */
    guint cpu;           /* index of the current one */
    GArray *gpus, *nics; /* of LhXmlDevice */
    GPtrArray *hosts;    /* of char *: distinct host_hash */
    guint host;          /* of the current CPU */
    guint line;          /* of the system element */
} LhXml;

/* Adds the values of the whole node. */
bool lh_xml_conclude(const LhXml *x);

/* Adds the PCIe tree if the file is of one host. *@slowest: slowest PCIe link that a GPU has for
 * itself, bytes/s; 0 if not all are known. */
bool lh_xml_add_tree(const LhXml *x, double *slowest);
