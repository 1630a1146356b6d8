import "./style/base.css";
import "./style/shell.css";
import {Page} from "./page";
import {startTheme} from "./theme";
import {classification} from "./views/classification";
import {cluster} from "./views/cluster";
import {curves} from "./views/curves";
import {model} from "./views/model";
import {snapshots} from "./views/snapshots";
import {tryIt} from "./views/try_it";

startTheme();
new Page([curves, snapshots, cluster, classification, model, tryIt]).start(document.body);
