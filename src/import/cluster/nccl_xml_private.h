/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's topology XML as it was read: nccl_xml.c fills this, nccl_graph.c concludes.
 */
#pragma once

#include "import/cluster/pcie_tree.h"

#define LH_XML_DEPTH_MAX 32
#define LH_XML_LINKS_MAX 64 /* of a GPU, to one target */

typedef struct {
    char *bus;                       /* of its PCIe function */
    char *name;                      /* of a NIC; NULL: not said */
    guint host, cpu;                 /* by number */
    uint32_t path[LH_XML_DEPTH_MAX]; /* elements around it, by number, the outermost first */
    guint depth;
    guint line;
    uint64_t switched;           /* NVLinks to a switch */
    GArray *links;               /* of LhXmlLink, to other GPUs */
    uint64_t capability, number; /* as CUDA counts GPUs */
    double pcie;                 /* nocheck:unit: bytes/s; 0: not said */
    double wire;                 /* nocheck:unit: of a NIC, bytes/s */
} LhXmlDevice;

typedef struct {
    char *target; /* bus of a GPU */
    uint64_t count;
    int line, column; /* where it is read to its end */
} LhXmlLink;

/* What a GPU has around it. */
typedef struct {
    bool is_pci;
    bool is_parted; /* a switch of which other ones may be parts */
    double rate;    /* of its link to what is around it, bytes/s; nocheck:unit: as in the file */
} LhXmlElement;

/* By NUMA node, and by host where there are several. */
typedef struct {
    guint host;
    char *numa; /* NULL: not said */
    char *arch, *vendor;
    LhToolCpu said;
    guint line;
} LhXmlCpu;

typedef struct {
    LhToolReader *r;
    GMarkupParseContext *context;
    uint32_t path[LH_XML_DEPTH_MAX];
    char *bus; /* of the PCIe function that is being read */
    guint depth;
    GArray *elements;    /* of LhXmlElement, by number */
    GArray *cpus;        /* of LhXmlCpu */
    guint cpu;           /* that is being read */
    GArray *gpus, *nics; /* of LhXmlDevice */
    GPtrArray *hosts;    /* of char *: host_hash, each once */
    guint host;          /* of the CPU that is being read */
    guint line;          /* of the system */
} LhXml;

/* Adds what the file says of the whole node. */
bool lh_xml_conclude(const LhXml *x);

/* Adds PCIe as a tree, if the file is of one host; in *@slowest the slowest PCIe link that a GPU
 * has for itself, bytes/s, 0 if not all are said. */
bool lh_xml_add_tree(const LhXml *x, double *slowest);
